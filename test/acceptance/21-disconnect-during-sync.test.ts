import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { dump, query } from './support/database.ts';
import { createWorld } from './support/world.ts';

const LISTS = ['contacts', 'conversations'] as const;
const LATE_MS = 1_500;

describe('21. A disconnect during a job deletes the tokens and, if asked, the data; nothing is sent or written afterwards.', async () => {
  const world = await createWorld({ sandbox: { latencyMs: 150 } });
  const { worker } = await world.start();

  /** Installs a company, and stops in the middle of its first sync, with a request of each list under way. */
  const begin = async (name: string) => {
    const { company, browser, id } = await world.installed({
      name,
      plan: 'enterprise',
      contacts: 3_000,
      conversations: 3_000,
    });
    await world.waitForStatus(browser, id, ({ resources }) =>
      LISTS.every((list) => resources[list].pages > 1),
    );
    for (const list of LISTS) {
      const match = { path: `/${list}`, company_id: company.id };
      await world.control.fault({ match, fault: { delay_ms: LATE_MS }, times: 1 });
    }
    await waitFor(
      async () => (await world.control.faults()).every(({ used }) => used === 1),
      'late requests',
    );
    return { company, browser, id };
  };
  /** The ids of records that stand anywhere in the database. */
  const recordIds = async () => {
    const ids = (await dump(world.databaseUrl)).match(/\b(?:crd|cnv)_\w+/g);
    return [...new Set(ids)].sort();
  };
  const tokensOf = async (id: string) => {
    const select = 'select access_token, refresh_token from tokens where instance_id = $1';
    const rows = await query(world.databaseUrl, select, [id]);
    return rows.flatMap((row) => Object.values(row)).filter((token) => token !== null);
  };

  it.each([
    { what: 'with the data', deletes: true, stops: false },
    { what: 'with the data, while the worker stands still', deletes: true, stops: true },
    { what: 'without the data', deletes: false, stops: false },
  ])('ends everything at once, $what', async ({ what, deletes, stops }) => {
    const { company, browser, id } = await begin(`Leaves ${what}`);
    if (stops) await world.stopBetweenWrites(worker);
    const fields = deletes ? { delete_data: 'yes', company_name: company.name } : {};
    const answer = await world.press(browser, id, 'disconnect', fields);
    expect(answer.status).toBe(200);
    const { now } = await world.control.state();
    expect(await tokensOf(id)).toEqual([]);
    const waitForDeletion = () => waitFor(async () => (await recordIds()).length === 0, 'the data to go');
    if (deletes && !stops) await waitForDeletion();
    const kept = await recordIds();
    if (!deletes) expect(kept.length).toBeGreaterThan(200);

    const answered = () =>
      world.control.requests().then((all) => all.filter(({ company_id }) => company_id === company.id));
    const late = async () => (await answered()).filter(({ fault }) => fault !== null);
    await waitFor(async () => (await late()).length === LISTS.length, 'the late answers');
    if (stops) {
      worker.signal('SIGCONT');
      await waitForDeletion();
    }
    // The worker is through with them when it has done other work of the same kind.
    const other = await world.control.addCompany({ name: 'Comes', contacts: 0, conversations: 0 });
    const otherBrowser = world.browser();
    await world.waitForSync(otherBrowser, await world.install(otherBrowser, other));
    expect((await answered()).filter(({ at }) => at > now)).toEqual([]);
    expect(await recordIds()).toEqual(deletes ? [] : kept);
    expect(await tokensOf(id)).toEqual([]);
  });
});
