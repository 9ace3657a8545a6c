import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expectLimitHeld, LIMIT } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const WINDOW_MS = 8_000;
/** Three seconds before a window's end, or a bit earlier, what was left to the sync goes to anybody. */
const RELEASE_MS = 4_000;
/** Requests of a window that calls of the handler leave to the sync: a tenth. */
const SHARE = 12;
/** Of the list that is copied meanwhile: three windows, even if the handler begins after the first one. */
const PAGES = 90;
/** Twice the windows that the list takes if its share is all that it gets, in milliseconds. */
const SYNC_MS = 2 * (PAGES / SHARE) * WINDOW_MS;

describe('38. Calls of the handler to the service share the limit, and leave a share of it to the sync.', async () => {
  const world = await createWorld({ sandbox: { windowMs: WINDOW_MS, latencyMs: 20 } });
  const handler = join(import.meta.dirname, 'handlers/call-without-end.ts');
  await world.startWeb({ handler });
  await Promise.all([world.startWorker({ handler }), world.startWorker({ handler })]);

  it('a handler that calls without end slows a sync down, and does not stop it', async () => {
    const { company, browser, id } = await world.installed({
      name: 'Busy',
      plan: 'enterprise',
      contacts: 1,
      conversations: PAGES * 100,
    });
    const { resources } = await world.waitForSync(browser, id, SYNC_MS);
    expect(resources.conversations.records).toBe(PAGES * 100);

    const requests = await world.counted(company);
    expectLimitHeld(requests, WINDOW_MS);

    const windows = splitWindows(requests).slice(1, -1);
    const early = windows.map((rows) => {
      const release = (rows[0]?.at ?? 0) + WINDOW_MS - RELEASE_MS;
      return rows.filter(({ at, path }) => path === '/tags' && at < release).length;
    });
    expect(early.length).toBeGreaterThan(0);
    // What the handler leaves early is there for the sync, which has work in each of these windows.
    const ofSync = windows.map((rows) => rows.filter(({ path }) => path !== '/tags').length);
    expect(ofSync.filter((pages) => pages < SHARE)).toEqual([]);
    expect(Math.max(...early)).toBeLessThanOrEqual(LIMIT - SHARE);
    // A slow machine does not get through more.
    expect(Math.max(...early)).toBeGreaterThan(2 * SHARE);
  });
});

/** Splits requests into the service's windows: each begins with its first request. */
function splitWindows<Row extends { at: number }>(rows: readonly Row[]): Row[][] {
  const windows: Row[][] = [];
  for (const row of rows) {
    const last = windows.at(-1);
    if (last?.[0] !== undefined && row.at - last[0].at < WINDOW_MS) last.push(row);
    else windows.push([row]);
  }
  return windows;
}
