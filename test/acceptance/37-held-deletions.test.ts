import { describe, expect, it } from 'vitest';
import { HandlerReport } from './support/handler-report.ts';
import { expectWhole, syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

/** The least that has a brake. */
const BRAKE_FROM = 50;

describe('37. A whole run that would delete more than half of a list of 50 or more holds the deletions until the next one agrees or a person confirms.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 1_000 } });
  const report = new HandlerReport();
  await world.start(report.options);

  /** A company whose list of contacts is empty, all of a sudden, in one run after the other when it is told to be. */
  async function copied(contacts: number) {
    const { company, browser, id } = await world.installed({ name: 'Emptied', contacts, conversations: 0 });
    await world.waitForDelivery(browser, id);
    const self = `${world.sandbox.apiUrl}/contacts`;
    const body = { _pagination: { next: null }, _links: { self }, _results: [] };
    return {
      company,
      browser,
      id,
      async syncEmpty() {
        const match = { path: '/contacts', company_id: company.id };
        await world.control.fault({ match, fault: { status: 200, body }, times: 1 });
        return (await syncAgain(world, browser, id)).resources.contacts;
      },
      syncWhole: async () => (await syncAgain(world, browser, id)).resources.contacts,
      kept: async () => (await world.download(browser, id, 'contacts')).length,
      told: () => report.changes(id, 'contacts').filter(({ change }) => change === 'deleted').length,
    };
  }

  it.concurrent('the next run that agrees deletes what neither has seen', async () => {
    const { browser, id, syncEmpty, kept, told } = await copied(BRAKE_FROM);
    expect(await syncEmpty()).toMatchObject({ error: null, deleted: 0, held_deletions: BRAKE_FROM });
    expect(await kept()).toBe(BRAKE_FROM);
    expect((await browser.get(`/instances/${id}`)).text()).toMatch(/deletions held/i);
    expect(told()).toBe(0);

    expect(await syncEmpty()).toMatchObject({ error: null, deleted: BRAKE_FROM, held_deletions: 0 });
    expect(await kept()).toBe(0);
    await world.waitForDelivery(browser, id);
    expect(told()).toBe(BRAKE_FROM);
  });

  it.concurrent('a person who confirms deletes what the run has not seen', async () => {
    const { browser, id, syncEmpty, kept, told } = await copied(BRAKE_FROM + 10);
    expect(await syncEmpty()).toMatchObject({ deleted: 0, held_deletions: BRAKE_FROM + 10 });
    await world.press(browser, id, 'contacts/confirm-deletions');
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.held_deletions === 0);
    expect(await kept()).toBe(0);
    await world.waitForDelivery(browser, id);
    expect(told()).toBe(BRAKE_FROM + 10);
    expect((await browser.get(`/instances/${id}`)).text()).not.toMatch(/deletions held/i);
  });

  it.concurrent('a run that sees the records again deletes nothing, and the next one holds anew', async () => {
    const { company, browser, id, syncEmpty, syncWhole, kept, told } = await copied(BRAKE_FROM);
    await syncEmpty();
    expect(await syncWhole()).toMatchObject({ deleted: 0, held_deletions: 0 });
    expect(await syncEmpty()).toMatchObject({ deleted: 0, held_deletions: BRAKE_FROM });
    expect(await kept()).toBe(BRAKE_FROM);
    expect(told()).toBe(0);
    await syncWhole();
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.concurrent('up to half of a list, and a short list, are deleted at once', async () => {
    const short = await copied(BRAKE_FROM - 1);
    expect(await short.syncEmpty()).toMatchObject({ deleted: BRAKE_FROM - 1, held_deletions: 0 });
    expect(await short.kept()).toBe(0);

    const long = await copied(BRAKE_FROM);
    const records = { resource: 'contacts', delete: BRAKE_FROM / 2 };
    await world.control.call('POST', `companies/${long.company.id}/records`, records);
    expect(await long.syncWhole()).toMatchObject({ deleted: BRAKE_FROM / 2, held_deletions: 0 });
  });
});
