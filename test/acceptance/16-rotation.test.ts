import { describe, expect, it } from 'vitest';
import type { HttpBrowser } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld, type Status, type World } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** A thousand would take longer than all other tests. */
const MANY = 100;
const LANES = 6;
/** Longer than a sweep takes to come and to be done. */
const SWEPT_MS = 120_000;
/** While a rotation is due, the clock goes on in steps shorter than the 24 hours in which it succeeds. */
const DUE_STEP_MS = 18 * HOUR_MS;

interface Installed {
  browser: HttpBrowser;
  id: string;
}

describe('16. A thousand instances due in the same hour are spread, and none is missed; a year of moving the clock never leads to `needs_reauthorization`.', () => {
  it.concurrent('spreads many that are due together, and misses none', async () => {
    const world = await createWorld();
    await world.startWeb();
    const installed = await installMany(world, MANY);
    const statuses = await statusesOf(world, installed);
    const due = statuses.map((status) => Date.parse(status.token.refresh_due_at ?? '')).sort((a, b) => a - b);
    const firstDue = due[0] ?? 0;
    const hours = Map.groupBy(due, (at) => Math.floor((at - firstDue) / HOUR_MS));
    expect(hours.size).toBeGreaterThanOrEqual(6);
    expect(Math.max(...[...hours.values()].map(({ length }) => length))).toBeLessThan(MANY / 4);

    // At half time those are asked for that are due, and a few whose sync begins meanwhile.
    const half = due[MANY / 2] ?? 0;
    const mark = await world.control.mark();
    await world.control.clock({ set: half });
    await sweep(world, async () => (await refreshed(world, mark)).size > MANY / 2);
    expect((await refreshed(world, mark)).size).toBeLessThan(MANY * 0.75);

    const end = Math.min(...statuses.map((status) => Date.parse(status.token.refresh_expires_at ?? '')));
    await world.control.clock({ set: end - 6 * HOUR_MS });
    const isRotated = async () =>
      (await statusesOf(world, installed)).every(({ token }) => token.rotations === 1);
    await sweep(world, isRotated);
    await world.control.clock({ set: end + DAY_MS });
    await syncAll(world, installed.slice(0, 3));
    const after = await statusesOf(world, installed);
    expect(after.filter(({ status }) => status !== 'active')).toEqual([]);
  });

  it.concurrent('keeps all grants through a year', async () => {
    const world = await createWorld();
    await world.startWeb();
    const first = await world.startWorker();
    const installed = await installMany(world, 2);
    for (const { browser, id } of installed) await world.waitForSync(browser, id);
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

async function installMany(world: World, many: number): Promise<Installed[]> {
  const lanes = Array.from({ length: Math.min(LANES, many) }, async (_, lane) => {
    const browser = world.browser();
    const installed: Installed[] = [];
    for (let index = lane; index < many; index += LANES) {
      const company = await world.control.addCompany({
        name: `Company ${index}`,
        contacts: 1,
        conversations: 1,
      });
      installed.push({ browser, id: await world.install(browser, company) });
    }
    return installed;
  });
  return (await Promise.all(lanes)).flat();
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
  await waitFor(isDone, 'the rotation', SWEPT_MS);
  await worker.stop();
}
