import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { syncAgain } from './support/lists.ts';
import { putTokenRow, storedTokens, tokenRow } from './support/stored-tokens.ts';
import { createWorld } from './support/world.ts';

const MINUTE_MS = 60_000;
/** Less than it takes until a run that had ended is begun again. */
const SOON_MS = 15_000;

describe('11. `invalid_grant` after a sibling has rotated goes on with the newer token; a genuine one stops the jobs, is told once, deletes nothing, asks fewer than three times an hour, and installing again repairs it.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  const { web, worker } = await world.start();
  const { company, browser, id } = await world.synced({ name: 'Ended', contacts: 250 });

  it('goes on with the tokens that a sibling stored while it was refused', async () => {
    const older = await tokenRow(world, id);
    await control.clock({ advance_ms: 61 * MINUTE_MS });
    await syncAgain(world, browser, id);
    const newer = await tokenRow(world, id);
    expect(newer.access_token).not.toBe(older.access_token);

    await putTokenRow(world, older);
    const mark = await control.mark();
    const fault = { status: 400, body: { error: 'invalid_grant' }, delay_ms: 2_000 };
    await control.fault({ match: { path: '/oauth/token' }, fault });
    await world.press(browser, id, 'sync');
    await waitFor(async () => (await control.faults()).at(-1)?.used, 'the refresh');
    const begun = await world.status(browser, id);
    await putTokenRow(world, newer);
    const ended = await world.waitForSync(browser, id, SOON_MS);
    expect(ended.status).toBe('active');
    expect(ended.resources.contacts.started_at).toBe(begun.resources.contacts.started_at);
    expect((await control.tokenRequests(mark)).map(({ status }) => status)).toEqual([400]);
    expect((await storedTokens(world, id)).access_token).toBe(newer.access_token);
  });

  it('stops, tells it once, and deletes nothing when the grant has ended', async () => {
    const sibling = await world.startWorker();
    const mark = await control.mark();
    await control.fault({ match: { path: '/contacts' }, fault: { revoke: 'grant' } });
    await world.press(browser, id, 'sync');
    const isEnded = ({ status }: { status: string }) => status === 'needs_reauthorization';
    await world.waitForStatus(browser, id, isEnded);
    expect((await browser.get(`/instances/${id}`)).text()).toMatch(/authorize again/i);

    // A worker that starts looks after all tokens and schedules.
    const extra = [];
    for (let minutes = 0; minutes < 60; minutes += 20) {
      await control.clock({ advance_ms: 20 * MINUTE_MS });
      extra.push(await world.startWorker());
    }
    await browser.post(`/instances/${id}/sync`);
    const { status } = await syncOther();
    expect(status).toBe('active');
    const requests = (await control.requests(mark)).filter(({ company_id }) => company_id === company.id);
    expect(requests.filter(({ path }) => path === '/oauth/token').length).toBeLessThan(3);
    expect(requests.length).toBeLessThan(10);

    const log = [web, worker, sibling, ...extra].map((process) => process.output()).join('');
    const warned = log.split('\n').filter((line) => /"level":("warn"|"error"|40|50)/.test(line));
    const told = warned.filter((line) => line.includes(id) && /authoriz/i.test(line));
    expect(told).toHaveLength(1);
    expect((await world.download(browser, id, 'contacts')).length).toBe(250);
    expect((await world.status(browser, id)).status).toBe('needs_reauthorization');
  });

  it('works again after an install', async () => {
    expect(await world.install(browser, company)).toBe(id);
    const status = await world.waitForSync(browser, id);
    expect(status).toMatchObject({ status: 'active', resources: { contacts: { records: 250, deleted: 0 } } });
  });

  /** The jobs of another company go on, and by its end those of the ended one would have begun. */
  async function syncOther() {
    const other = await control.addCompany({ name: 'Other' });
    const otherId = await world.install(browser, other);
    await world.waitForSync(browser, otherId);
    return syncAgain(world, browser, otherId);
  }
});
