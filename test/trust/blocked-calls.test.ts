import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { readBudgetState } from '../support/budget-state.ts';
import { install, largestWindow } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const WINDOW_MS = 20_000;
const LIMIT = 120;
const CALLS = 100;

/** Of how many it holds a permit at the least: while others keep the database, the first may have gone out already. */
const HELD = CALLS / 5;

const dir = tempDir();
const hold = join(dir, 'hold');
const testApp = await startTestApp({ workers: false, sandbox: { windowMs: WINDOW_MS, latencyMs: 5 } });
const { control } = testApp;
const redis = new Redis(testApp.redisUrl);
afterAll(() => redis.disconnect());

const spawnWorker = async (env: Record<string, string> = {}) => {
  const worker = spawnEntry('test/trust/watched-worker.ts', {
    ...testApp.env,
    NOTES: join(dir, 'notes'),
    ...env,
  });
  await worker.waitForOutput(/the workers run/);
  return worker;
};

test('a worker that is blocked with permits in its hand, until their leases are over and others have used the limit up, sends nothing under them', async () => {
  writeFileSync(hold, '');
  const blocked = await spawnWorker({ HOLD: hold, HOLD_HOW: 'block', CALLS: String(CALLS) });
  const company = await control.addCompany({
    name: 'Blocked',
    plan: 'enterprise',
    contacts: 100,
    conversations: 60_000,
  });
  await install(testApp.session(), company);
  await blocked.waitForOutput(/holds a page/);
  const requests = async () =>
    (await control.requests()).filter(
      ({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'),
    );
  const permits = async () =>
    Object.keys((await readBudgetState(redis, company.id)).flight).filter((id) => id.includes(':calls:'));
  await waitFor(async () => (await permits()).length > HELD, { what: 'permits of calls' });

  const healthy = await spawnWorker();
  await waitFor(async () => (await permits()).length === 0, {
    what: 'the end of their leases',
  });
  // The window in which it goes on has no place for its calls.
  await waitFor(
    async () => {
      const { remaining = LIMIT, end = 0 } = await readBudgetState(redis, company.id);
      return remaining < HELD && end > Date.now() + WINDOW_MS / 4;
    },
    { what: 'a window that the other worker uses' },
  );
  rmSync(hold);
  await blocked.waitForOutput(/lets it go/);
  const seen = await requests();
  expect(seen.filter(({ status }) => status === 429)).toEqual([]);
  expect(
    largestWindow(
      seen.map(({ at }) => at),
      WINDOW_MS,
    ),
  ).toBeLessThanOrEqual(LIMIT);
  for (const worker of [blocked, healthy]) {
    expect((await worker.stop('SIGTERM')).code, worker.output()).toBe(0);
  }
});
