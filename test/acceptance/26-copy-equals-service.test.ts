import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { HandlerReport } from './support/handler-report.ts';
import { expectWhole, readCopy, readService, syncAgain } from './support/lists.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld } from './support/world.ts';

/** Four pages of a hundred. */
const CONTACTS = 330;

const MOVES = [
  ['inserted', { create: 60 }],
  ['deleted', { delete: 25 }],
  ['changed', { change: 120 }],
  ['reordered', { reorder: true }],
  ['all of that', { create: 20, delete: 40, change: 120, reorder: true }],
] as const;

const ORDERS = ['activity', 'created'] as const;

describe("26. The copy equals the service's after two full runs, whatever was inserted, deleted or reordered meanwhile. No record is told `deleted` while the service has it: not after a partial or failed run, not when it moves to another page during a run, not after one empty answer.", async () => {
  const world = await createWorld({ sandbox: { windowMs: 1_000 } });
  const { control } = world;
  const report = new HandlerReport();
  const { worker } = await world.start(report.options);
  const workers = [worker];

  const newCompany = (facts: { contacts?: number; order?: (typeof ORDERS)[number] } = {}) =>
    control.addCompany({ name: 'Moving', contacts: CONTACTS, conversations: 0, ...facts });
  const change = (company: SandboxCompany, records: object) =>
    control.call<Record<'created' | 'deleted' | 'changed', string[]>>(
      'POST',
      `companies/${company.id}/records`,
      { resource: 'contacts', ...records },
    );

  async function copied(facts: Parameters<typeof newCompany>[0] = {}) {
    const company = await newCompany(facts);
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForDelivery(browser, id);
    const told = () => report.changes(id, 'contacts').filter((entry) => entry.change === 'deleted');
    return { company, browser, id, told, match: { path: '/contacts', company_id: company.id } };
  }

  it.concurrent.each(
    MOVES.flatMap(([what, records]) => ORDERS.map((order) => [order, what, records] as const)),
  )('by %s, the copy is right in the end: %s while two runs page', async (order, _what, records) => {
    const company = await newCompany({ order });
    const match = { path: '/contacts', company_id: company.id };
    const move = async () => {
      for (const nth of [2, 3, 4]) {
        await control.fault({
          match: { ...match, nth },
          fault: { records: { resource: 'contacts', ...records } },
        });
      }
    };
    await move();
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    expect(await readCopy(world, browser, id, 'contacts')).not.toEqual([]);
    await move();
    await syncAgain(world, browser, id);
    await syncAgain(world, browser, id);
    const { resources } = await syncAgain(world, browser, id);
    expect(resources.contacts).toMatchObject({ error: null, missing: 0 });
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.concurrent.each([
    ['with checks', '1'],
    ['without checks', '0'],
  ])('%s, no record that moves to a page that was read turns deleted', async (_how, seconds) => {
    const moving = seconds === '1' ? world : await createWorld({ env: { CHECK_INTERVAL_SECONDS: '0' } });
    if (moving !== world) await moving.startAll(report.options);
    const { company, browser, id } = await moving.installed({
      name: 'Active',
      contacts: CONTACTS,
      conversations: 0,
    });
    await moving.waitForDelivery(browser, id);
    // Each time the run has read a page, thirteen records of the pages to come move to the first one.
    const records = { resource: 'contacts', change: 13 } as const;
    for (const nth of [2, 3, 4]) {
      const match = { path: '/contacts', company_id: company.id, nth };
      await moving.control.fault({ match, fault: { records } });
    }
    await syncAgain(moving, browser, id);
    await syncAgain(moving, browser, id);
    await moving.waitForDelivery(browser, id);
    expect(report.changes(id, 'contacts').filter((told) => told.change === 'deleted')).toEqual([]);
    await expectWhole(moving, company, browser, id, ['contacts']);
  });

  it.concurrent.each([9, 40])('one empty answer for a list of %d deletes nothing', async (contacts) => {
    const { company, browser, id, told, match } = await copied({ contacts });
    const self = `${world.sandbox.apiUrl}/contacts`;
    const body = { _pagination: { next: null }, _links: { self }, _results: [] };
    await control.fault({ match, fault: { status: 200, body } });
    await syncAgain(world, browser, id);
    await syncAgain(world, browser, id);
    await world.waitForDelivery(browser, id);
    expect(told()).toEqual([]);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it('an empty page is not the end', async () => {
    const company = await newCompany();
    const next = `${world.sandbox.apiUrl}/contacts?limit=99`;
    const body = { _pagination: { next }, _links: { self: next }, _results: [] };
    const match = { path: '/contacts', company_id: company.id };
    await control.fault({ match, fault: { status: 200, body } });
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  /** The service has deleted 60 records; then the run gets stuck at its third page. */
  it.each([
    ['fails', { status: 403 }, 1_000],
    ['is paused', { delay_ms: 2_000 }, 1],
    ['loses its worker', { delay_ms: 2_000 }, 1],
  ])('no record turns deleted by a run that %s', async (how, fault, times) => {
    const { company, browser, id, match } = await copied();
    const copy = await readCopy(world, browser, id, 'contacts');
    await change(company, { delete: 60 });
    await control.fault({ match: { ...match, nth: 3 }, fault, times });
    const mark = await control.mark();
    await world.press(browser, id, 'sync');
    await waitFor(async () => (await control.faults())[0]?.used, 'the third page to be asked for');
    if (how === 'fails')
      await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.error !== null);
    if (how === 'is paused') await world.press(browser, id, 'pause');
    if (how === 'loses its worker') await workers.pop()?.stop('SIGKILL');
    expect((await control.requests(mark)).filter(({ path }) => path === '/contacts').length).toBeGreaterThan(
      1,
    );
    expect(await readCopy(world, browser, id, 'contacts')).toEqual(copy);

    await control.clearFaults();
    if (how === 'is paused') await world.press(browser, id, 'resume');
    if (workers.length === 0) workers.push(await world.startWorker());
    await syncAgain(world, browser, id);
    const service = await readService(world, company, 'contacts');
    expect(service.length).toBe(CONTACTS - 60);
    expect(await readCopy(world, browser, id, 'contacts')).toEqual(service);
  });
});
