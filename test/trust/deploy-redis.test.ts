import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { UPKEEP } from '../../jobs/schedules.ts';
import { readBudgetState, writeBudgetState } from '../support/budget-state.ts';
import { downloadIds, install, isSynced, largestWindow, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { makeNextVersion } from './next-version.ts';

const WINDOW_MS = 3_000;
const LIMIT = 120;

/** Two versions on the same Redis, without a migration between them: neither ends the other. */
const testApp = await startTestApp({ workers: false, sandbox: { windowMs: WINDOW_MS, latencyMs: 10 } });
const redis = new Redis(testApp.redisUrl);
afterAll(() => redis.disconnect());

/** What lies in Redis besides the queues, by the beginning of the key. Under a name that is there, a form never changes. */
const FORMS: [RegExp, string][] = [
  [/^budget:\{[^}]+\}:state$/, 'string'],
  [/^budget:\{[^}]+\}:unheard$/, 'zset'],
  [/^budget:\{[^}]+\}:bucket:/, 'zset'],
  [/^budget:\{[^}]+\}:counted$/, 'zset'],
  [/^budget:\{[^}]+\}:pace$/, 'hash'],
  [/^tokens:\{[^}]+\}:uses$/, 'hash'],
  [/^readiness$/, 'string'],
  [/^(limit|operator-known):/, 'string'],
];

test('both versions work on one company side by side: its limit is kept, and each finishes what it knows', async () => {
  const company = await testApp.control.addCompany({
    name: 'Between',
    plan: 'enterprise',
    contacts: 14_050,
    conversations: 50,
  });
  const old = spawnEntry('src/worker.ts', testApp.env);
  await old.waitForOutput(/the workers run/);
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) > 2);

  const next = spawnEntry('src/worker.ts', testApp.env, { root: makeNextVersion({ migrates: false }) });
  await next.waitForOutput(/the workers run/);
  // Who takes a job, is chance: these are brought forward until the version that knows the resource has them.
  const { queues } = testApp.app;
  await waitFor(
    async () => {
      await queues.upkeep.add(UPKEEP.startRuns, {}, { removeOnComplete: true });
      await queues.enqueue([{ instanceId: id, resource: 'tags' }], { hurry: true });
      return /"resource":"tags".*the run is finished/.test(next.output());
    },
    { intervalMs: 100 },
  );
  await waitForStatus(browser, id, isSynced);

  expect(await readBudgetState(redis, company.id)).toMatchObject({ mood: expect.any(Number) });
  const ids = await downloadIds(browser, id, 'contacts');
  expect(ids.length).toBe(company.counts.contacts);
  expect(new Set(ids).size).toBe(ids.length);
  const calls = (await testApp.control.requests()).filter(
    ({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'),
  );
  expect(calls.filter(({ status }) => status !== 200)).toEqual([]);
  const moments = calls.map(({ at }) => at);
  expect(moments.length).toBeGreaterThan(LIMIT);
  expect(largestWindow(moments, WINDOW_MS)).toBeLessThanOrEqual(LIMIT);
  for (const one of [old, next]) {
    expect(one.output()).not.toMatch(/"level":"(error|fatal)"/);
    expect(one.output().split('is left alone').length).toBeLessThanOrEqual(2);
    expect(await one.stop()).toEqual({ code: 0, signal: null });
  }
});

test('what the budget of the other version knows more about stays where it is', async () => {
  const company = await testApp.control.addCompany({ name: 'Kept', plan: 'starter', contacts: 10 });
  const browser = testApp.session();
  const id = await install(browser, company);
  const others = { humour: 'calm', plans: { a: [1] } };
  const before = await readBudgetState(redis, company.id);
  await writeBudgetState(redis, company.id, { ...before, ...others });
  const worker = spawnEntry('src/worker.ts', testApp.env);
  await waitForStatus(browser, id, isSynced);
  const state = await readBudgetState(redis, company.id);
  expect(state).toMatchObject({ ...others, limit: LIMIT });
  await worker.stop();
});

test('every key in Redis has the form that its name stands for in every version', async () => {
  const keys = (await redis.keys('*')).filter((key) => !key.startsWith('bull:') && !key.endsWith(':mood'));
  const forms = await Promise.all(keys.map((key) => redis.type(key)));
  const wrong = keys.filter((key, at) => !FORMS.some(([name, form]) => name.test(key) && forms[at] === form));
  expect(wrong).toEqual([]);
  expect(keys.length).toBeGreaterThan(5);
});
