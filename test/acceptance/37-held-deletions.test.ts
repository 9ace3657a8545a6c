import { describe, expect, it } from 'vitest';
import { AppClock } from './support/app-clock.ts';
import { HandlerReport } from './support/handler-report.ts';
import { expectWhole, syncAgain } from './support/lists.ts';
import { createWorld, type World } from './support/world.ts';

/** The least that has a brake. */
const BRAKE_FROM = 10;

/** One below, as on a page that shows how many are deleted. */
const SHORT = BRAKE_FROM - 1;

const HOUR_MS = 60 * 60_000;

/** Checks and scheduled runs would meet the answers that a test gives to its own runs. */
const ENV = { CHECK_INTERVAL_SECONDS: '0', SYNC_INTERVAL_MINUTES: String(30 * 24 * 60) };

/** A company whose list of contacts is empty, all of a sudden, in the next answers. */
async function copied(world: World, report: HandlerReport, contacts: number) {
  const { company, browser, id } = await world.installed({ name: 'Emptied', contacts, conversations: 0 });
  await world.waitForDelivery(browser, id);
  const self = `${world.sandbox.apiUrl}/contacts`;
  const body = { _pagination: { next: null }, _links: { self }, _results: [] };
  return {
    company,
    browser,
    id,
    async syncEmpty(times = 1) {
      const match = { path: '/contacts', company_id: company.id };
      await world.control.fault({ match, fault: { status: 200, body }, times });
      return (await syncAgain(world, browser, id)).resources.contacts;
    },
    syncWhole: async () => (await syncAgain(world, browser, id)).resources.contacts,
    kept: async () => (await world.download(browser, id, 'contacts')).length,
    told: () => report.changes(id, 'contacts').filter(({ change }) => change === 'deleted').length,
    page: async () => (await browser.get(`/instances/${id}`)).text(),
  };
}

describe('37. A full run that would delete more than half of a list of 10 or more holds the deletions until a person confirms, or until all full runs of 24 hours agree.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 1_000 }, env: ENV });
  const report = new HandlerReport();
  await world.startAll(report.options);

  it.concurrent('a person who confirms deletes what no run since has seen', async () => {
    const { company, browser, id, syncEmpty, kept, told, page } = await copied(world, report, BRAKE_FROM);
    expect(await syncEmpty()).toMatchObject({ error: null, deleted: 0, held_deletions: BRAKE_FROM });
    expect([await kept(), told()]).toEqual([BRAKE_FROM, 0]);
    expect(await page()).toMatch(/deletions held/i);
    // A run that agrees changes nothing.
    expect(await syncEmpty()).toMatchObject({ error: null, deleted: 0, held_deletions: BRAKE_FROM });
    expect([await kept(), told()]).toEqual([BRAKE_FROM, 0]);

    await world.press(browser, id, 'contacts/confirm-deletions');
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.held_deletions === 0);
    expect(await kept()).toBe(0);
    await world.waitForDelivery(browser, id);
    expect(told()).toBe(BRAKE_FROM);
    expect(await page()).not.toMatch(/deletions held/i);
    await syncAgain(world, browser, id);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.concurrent('a run that sees the records again deletes nothing, and the next one holds anew', async () => {
    const { company, browser, id, syncEmpty, syncWhole, kept, told } = await copied(world, report, 40);
    await syncEmpty();
    expect(await syncWhole()).toMatchObject({ deleted: 0, held_deletions: 0 });
    expect(await syncEmpty()).toMatchObject({ deleted: 0, held_deletions: 40 });
    expect([await kept(), told()]).toEqual([40, 0]);
    await syncWhole();
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.concurrent('a shorter list needs two runs that agree, and half of a longer one is deleted', async () => {
    const short = await copied(world, report, SHORT);
    // The second run begins at once, and reads the whole list again.
    expect(await short.syncEmpty()).toMatchObject({ deleted: 0, held_deletions: 0 });
    expect([await short.kept(), short.told()]).toEqual([SHORT, 0]);
    expect(await short.syncEmpty(2)).toMatchObject({ deleted: SHORT, held_deletions: 0 });
    expect(await short.kept()).toBe(0);

    const long = await copied(world, report, BRAKE_FROM);
    const records = { resource: 'contacts', delete: BRAKE_FROM / 2 };
    await world.control.call('POST', `companies/${long.company.id}/records`, records);
    expect(await long.syncWhole()).toMatchObject({ deleted: BRAKE_FROM / 2, held_deletions: 0 });
  });

  it('after 24 hours in which every run held, the next one deletes', async () => {
    const later = await createWorld({ sandbox: { windowMs: 1_000 }, env: ENV });
    const clock = new AppClock(later, 0);
    const told = new HandlerReport();
    await later.start(told.options);
    const list = await copied(later, told, BRAKE_FROM);
    expect(await list.syncEmpty()).toMatchObject({ held_deletions: BRAKE_FROM });
    // One run that disagrees begins the 24 hours anew.
    await list.syncWhole();
    await clock.pass(23 * HOUR_MS);
    expect(await list.syncEmpty()).toMatchObject({ held_deletions: BRAKE_FROM });
    await clock.pass(23 * HOUR_MS);
    expect(await list.syncEmpty()).toMatchObject({ deleted: 0, held_deletions: BRAKE_FROM });
    await clock.pass(2 * HOUR_MS);
    expect(await list.syncEmpty()).toMatchObject({ deleted: BRAKE_FROM, held_deletions: 0 });
    expect(await list.kept()).toBe(0);
    await later.waitForDelivery(list.browser, list.id);
    expect(list.told()).toBe(BRAKE_FROM);
  });
});
