import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import {
  downloadIds,
  install,
  isSynced,
  largestWindow,
  readStatus,
  waitForStatus,
} from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const WINDOW_MS = 6_000;
const LIMIT = 120;

/** A company of some 200 pages: more than a window. */
const GIANT = { plan: 'enterprise', contacts: 12_050, conversations: 8_000 };

async function start(latencyMs: number) {
  const testApp = await startTestApp({ workers: false, sandbox: { windowMs: WINDOW_MS, latencyMs } });
  return { ...testApp, worker: () => spawnEntry('src/worker.ts', testApp.env) };
}

async function expectWholeCopyWithinLimit(
  testApp: TestApp,
  browser: HttpSession,
  id: string,
  company: SandboxCompany,
) {
  for (const resource of ['contacts', 'conversations']) {
    const ids = await downloadIds(browser, id, resource);
    expect(ids.length).toBe(company.counts[resource]);
    expect(new Set(ids).size).toBe(ids.length);
  }
  const calls = (await testApp.control.requests()).filter((entry) => entry.company_id === company.id);
  const api = calls.filter(({ path }) => !path.startsWith('/oauth'));
  expect(api.filter(({ status }) => status === 429)).toEqual([]);
  expect(
    largestWindow(
      api.map(({ at }) => at),
      WINDOW_MS,
    ),
  ).toBeLessThanOrEqual(LIMIT);
  return api;
}

test('two worker processes keep the limit together and bring everything in once', async () => {
  const testApp = await start(20);
  const company = await testApp.control.addCompany({ name: 'Giant', ...GIANT });
  const workers = [testApp.worker(), testApp.worker()];
  await Promise.all(workers.map((worker) => worker.waitForOutput(/the workers run/)));
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);

  await expectWholeCopyWithinLimit(testApp, browser, id, company);
  const ends = await Promise.all(workers.map((worker) => worker.stop('SIGTERM')));
  expect(ends.map(({ code }) => code)).toEqual([0, 0]);
});

test('a worker that is killed in the middle of a sync costs nothing', async () => {
  const testApp = await start(30);
  const company = await testApp.control.addCompany({ name: 'Survivor', ...GIANT });
  const victim = testApp.worker();
  await victim.waitForOutput(/the workers run/);
  const browser = testApp.session();
  const id = await install(browser, company);
  const before = await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) >= 20);
  await victim.stop('SIGKILL');
  expect(isSynced(before)).toBe(false);

  testApp.worker();
  await waitForStatus(browser, id, isSynced);
  const api = await expectWholeCopyWithinLimit(testApp, browser, id, company);
  // Progress was kept: nothing was fetched again but what was under way when the worker died.
  const pages = Math.ceil(GIANT.contacts / 100) + Math.ceil(GIANT.conversations / 100);
  expect(api.filter(({ path }) => path !== '/me').length).toBeLessThanOrEqual(pages * 1.1 + 2);
});

test('a Redis that loses everything in the middle of a sync costs nothing', async () => {
  const testApp = await start(30);
  const company = await testApp.control.addCompany({ name: 'Flushed', ...GIANT });
  const worker = testApp.worker();
  await worker.waitForOutput(/the workers run/);
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) >= 20);
  const redis = new Redis(testApp.redisUrl);
  await redis.flushall();
  redis.disconnect();

  // The session is gone as well: the administrator installs again, and finds the same instance.
  const again = testApp.session();
  expect(await install(again, company)).toBe(id);
  await waitForStatus(again, id, isSynced);
  await expectWholeCopyWithinLimit(testApp, again, id, company);
  expect((await readStatus(again, id)).status).toBe('active');
});

test('SIGTERM ends a worker at once, between two pages', async () => {
  const testApp = await start(200);
  const company = await testApp.control.addCompany({ name: 'Halted', ...GIANT });
  const worker = testApp.worker();
  await worker.waitForOutput(/the workers run/);
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) >= 2);
  expect(await worker.stop('SIGTERM')).toEqual({ code: 0, signal: null });

  const { resources } = await readStatus(browser, id);
  const ids = await waitFor(() => downloadIds(browser, id, 'contacts'));
  expect(ids.length).toBe(resources.contacts?.records);
  expect(resources.contacts?.state).toBe('waiting');
});
