import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { loadConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { installMany } from '../support/install-many.ts';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld, type Status, type World } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const MANY = 1_000;
/** The most requests of the token route in a second. */
const PACE = 10;
/** While a rotation is due, the clock goes on in steps shorter than the 24 hours in which it succeeds. */
const DUE_STEP_MS = 18 * HOUR_MS;

interface Installed {
  browser: HttpBrowser;
  id: string;
}

describe('16. A thousand instances due in the same hour are spread, and none is missed; a year of moving the clock never leads to `needs_reauthorization`.', () => {
  it.concurrent('spreads a thousand that are due together, and misses none', async () => {
    const world = await createWorld();
    const { sandbox, control, databaseUrl } = world;
    await world.startWeb();
    const end = new Date((await control.state()).now);
    // The specification's six months.
    const renewed = end.setUTCMonth(end.getUTCMonth() + 6) - 12 * HOUR_MS;
    const companies = Array.from({ length: MANY }, (_, n) =>
      sandbox.company({ name: `Company ${n}`, plan: 'starter', contacts: 1, conversations: 1 }),
    );
    const db = await openDatabase(databaseUrl);
    const { tokenKeys } = loadConfig(world.env, { dataDir: world.dir });
    await installMany(db, new TokenCipher(tokenKeys), sandbox, companies, world.env.CLIENT_ID);
    await db.destroy();
    // Nothing is copied: this is about tokens.
    await query(databaseUrl, "update instances set status = 'paused'");
    await query(databaseUrl, 'update tokens set refresh_due_at = $1', [renewed]);
    const dueOf = async () => {
      const rows = await query<{ due: number }>(databaseUrl, 'select refresh_due_at as due from tokens');
      return rows.map(({ due }) => due).sort((one, other) => one - other);
    };
    const rotated = async () =>
      (await query(databaseUrl, 'select instance_id from tokens where rotations = 1')).length;

    await control.clock({ set: renewed + HOUR_MS });
    const worker = await world.startWorker();
    await waitFor(async () => (await rotated()) > MANY / 10, 'the first hundred');
    const moments = (await control.tokenRequests()).map(({ at }) => at).sort((one, other) => one - other);
    // A second of the pace may end, and the next one begin, within a second of the journal.
    const fastest = Math.min(...moments.slice(2 * PACE).map((at, n) => at - (moments[n] ?? 0)));
    expect(fastest).toBeGreaterThanOrEqual(1_000);
    // The others would take minutes at this pace.
    const endPace = await forgetPace(world.redis.url);
    await waitFor(async () => (await rotated()) === MANY, 'all of them');
    await Promise.all([endPace(), worker.stop()]);
    const due = await dueOf();
    const firstDue = due[0] ?? 0;
    const hours = Map.groupBy(due, (at) => Math.floor((at - firstDue) / HOUR_MS));
    expect(hours.size).toBeGreaterThanOrEqual(6);
    expect(Math.max(...[...hours.values()].map(({ length }) => length))).toBeLessThan(MANY / 4);

    // Only those are asked for that are due.
    const mark = await control.mark();
    await control.clock({ set: due[9] ?? 0 });
    await sweep(world, async () => (await refreshed(world, mark)).size >= 10);
    expect((await refreshed(world, mark)).size).toBe(10);

    // Days after the first tokens have ended, the last ones are good.
    await control.clock({ set: renewed + 10 * DAY_MS });
    const some = companies.slice(0, 3).map(({ id }) => `ins_${id}`);
    for (const id of some)
      await query(databaseUrl, "update instances set status = 'active' where id = $1", [id]);
    await sweep(world, async () => {
      const read = await query(databaseUrl, 'select id from lists where full_at is not null');
      return read.length === 2 * some.length;
    });
    const statuses = await query(
      databaseUrl,
      'select status, count(*) as count from instances group by status',
    );
    expect(statuses).toHaveLength(2);
  });

  it.concurrent('keeps all grants through a year', async () => {
    const world = await createWorld();
    await world.startWeb();
    const first = await world.startWorker();
    const facts = { contacts: 1, conversations: 1 };
    const installed = [
      await world.synced({ name: 'A', ...facts }),
      await world.synced({ name: 'B', ...facts }),
    ];
    await first.stop();
    const start = (await world.control.state()).now;
    for (let now = start; now < start + 366 * DAY_MS; ) {
      const tokens = (await statusesOf(world, installed)).map(({ token }) => token);
      const due = tokens.map(({ refresh_due_at }) => Date.parse(refresh_due_at ?? ''));
      const next = Math.min(...due);
      now = next > now ? Math.min(now + 60 * DAY_MS, next) : now + DUE_STEP_MS;
      const mark = await world.control.mark();
      await world.control.clock({ set: now });
      const dueNow = due.filter((at) => at <= now).length;
      if (dueNow > 0) await sweep(world, async () => (await refreshed(world, mark)).size >= dueNow);
      else await syncAll(world, installed);
      for (const { status } of await statusesOf(world, installed)) expect(status).toBe('active');
    }
    for (const { token } of await statusesOf(world, installed)) expect(token.rotations).toBe(2);
  });
});

/** Empties the counter of the pace all the time. @returns what ends that */
async function forgetPace(url: string): Promise<() => Promise<unknown>> {
  const redis = new Redis(url);
  const keys = await redis.keys('*limit:tokens*');
  const timer = setInterval(() => redis.unlink(keys), 20);
  return () => {
    clearInterval(timer);
    return redis.quit();
  };
}

async function syncAll(world: World, installed: readonly Installed[]): Promise<void> {
  const worker = await world.startWorker();
  for (const { browser, id } of installed) await syncAgain(world, browser, id);
  await worker.stop();
}

async function statusesOf(world: World, installed: readonly Installed[]): Promise<Status[]> {
  const statuses: Status[] = [];
  for (const { browser, id } of installed) statuses.push(await world.status(browser, id));
  return statuses;
}

/** The companies that the token route was asked for since a mark. */
async function refreshed(world: World, mark: number): Promise<Set<string | null>> {
  return new Set((await world.control.tokenRequests(mark)).map(({ company_id }) => company_id));
}

/** Runs a worker, which looks after the tokens as it starts, until something has come of it. */
async function sweep(world: World, isDone: () => Promise<boolean>): Promise<void> {
  const worker = await world.startWorker();
  await waitFor(isDone, 'the rotation');
  await worker.stop();
}
