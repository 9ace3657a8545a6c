import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { expectWhole, readCopy, readService, syncAgain } from './support/lists.ts';
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

describe("26. The final copy equals the service's after the following run, whatever was inserted, deleted or reordered meanwhile; no record turns deleted because of a partial or failed run.", async () => {
  const world = await createWorld({ sandbox: { windowMs: 1_000 } });
  const { control } = world;
  const { worker } = await world.start();
  const workers = [worker];

  const newCompany = () => control.addCompany({ name: 'Moving', contacts: CONTACTS, conversations: 0 });

  async function copied() {
    const company = await newCompany();
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    return { company, browser, id, match: { path: '/contacts', company_id: company.id } };
  }

  it.concurrent.each(MOVES)(
    'the copy is right after the next run: %s while two runs page',
    async (_what, records) => {
      const company = await newCompany();
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
      const { resources } = await syncAgain(world, browser, id);
      expect(resources.contacts.error).toBeNull();
      await expectWhole(world, company, browser, id, ['contacts']);
    },
  );

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
    await control.call('POST', `companies/${company.id}/records`, { resource: 'contacts', delete: 60 });
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
