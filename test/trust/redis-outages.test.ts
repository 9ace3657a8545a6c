import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { downloadIds, install, isSynced, waitForStatus } from '../support/install.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const RECORDS = { contacts: 4_000, conversations: 4_000 };

/** From the moment at which there is a Redis again, in milliseconds. */
const BACK_WITHIN_MS = 60_000;

const AWAY = /Redis cannot be reached/;
const BACK = /Redis is reachable again/;

/** An app with a worker of its own process, in the middle of a sync. */
async function begin() {
  const server = await startRedisServer();
  const proxy = await startTcpProxy(server.port);
  const testApp = await startTestApp({
    workers: false,
    redisUrl: redisUrlAt(proxy.port),
    sandbox: { windowMs: 6_000, latencyMs: 40 },
  });
  const worker = spawnEntry('src/worker.ts', testApp.env);
  await worker.waitForOutput(/the workers run/, 60_000);
  const company = await testApp.control.addCompany({ name: 'Goes on', plan: 'enterprise', ...RECORDS });
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) >= 10);
  return { server, proxy, testApp, worker, company, id };
}

type Begun = Awaited<ReturnType<typeof begin>>;

async function readiness({ testApp }: Begun) {
  const answer = await testApp.session().get('/readyz');
  return { code: answer.status, checks: (answer.json() as { checks: Record<string, string> }).checks };
}

/** Whoever looks is told: machines by the status, people by a page, whoever is on call by the log. */
async function expectToldAway(begun: Begun) {
  const { testApp, worker } = begun;
  const ready = await waitFor(async () => {
    const now = await readiness(begun);
    return now.code === 503 && now;
  });
  expect(ready.checks).toMatchObject({
    database: 'ok',
    redis: expect.stringMatching(/^Redis cannot be reached: |^no answer within/),
  });
  const page = await testApp.session().get('/install', { follow: false });
  expect([page.status, page.headers.get('retry-after')]).toEqual([503, '5']);
  expect(page.body).toContain('Nothing is lost.');
  await worker.waitForOutput(AWAY, 30_000);
}

/** All is as before, without anybody doing anything: the session may be gone, so the copy is looked at in a new one. */
async function expectBack(begun: Begun) {
  const { testApp, worker, company } = begun;
  await worker.waitForOutput(BACK, BACK_WITHIN_MS);
  const browser = testApp.session();
  const id = await waitFor(() => install(browser, company), { timeoutMs: BACK_WITHIN_MS });
  expect(id).toBe(begun.id);
  await waitForStatus(browser, id, isSynced, BACK_WITHIN_MS);
  for (const [list, count] of Object.entries(RECORDS)) {
    const ids = await downloadIds(browser, id, list);
    expect(ids.length).toBe(count);
    expect(new Set(ids).size).toBe(count);
  }
  expect((await readiness(begun)).code).toBe(200);
  expect((await worker.stop('SIGTERM')).code).toBe(0);
}

async function schedulesIn(port: number): Promise<number> {
  const redis = new Redis(redisUrlAt(port));
  return redis.zcard('bull:upkeep:repeat').finally(() => redis.disconnect());
}

describe.concurrent('runs and schedules go on by themselves', { timeout: 150_000 }, () => {
  test('after a Redis that dies and starts again at its address', async () => {
    const begun = await begin();
    await begun.server.kill();
    await expectToldAway(begun);
    await begun.server.start();
    await expectBack(begun);
  });

  test('after one whose connections stay open and silent', async () => {
    const begun = await begin();
    begun.server.freeze();
    await expectToldAway(begun);
    begun.server.unfreeze();
    await expectBack(begun);
  });

  test('after a failover to an empty one, while connections to the old one stay open and silent', async () => {
    const begun = await begin();
    const next = await startRedisServer();
    begun.server.freeze();
    begun.proxy.lead(next.port);
    await waitFor(async () => (await schedulesIn(next.port)) === 2, {
      timeoutMs: BACK_WITHIN_MS,
      what: 'the schedules to be back',
    });
    await expectBack(begun);
  });
});
