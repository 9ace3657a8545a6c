import { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { isRealRedis, redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** What the probe of readiness says of the jobs. */
async function readiness({ session }: TestApp): Promise<{ status: number; jobs: string }> {
  const answer = await session().get('/readyz');
  const { checks } = answer.json() as { checks: Record<string, string> };
  return { status: answer.status, jobs: checks.jobs ?? '' };
}

/** What the log says of a queue's connection, from a line on: its level, its message and that of its error. */
function told({ log }: TestApp, from: number, queue: string) {
  return log.lines
    .slice(from)
    .filter((line) => line.queue === queue && line.level !== 'debug')
    .map(({ level, msg, err }) => [level, msg, (err as Error | undefined)?.message]);
}

async function begin() {
  const server = await startRedisServer();
  const admin = new Redis(redisUrlAt(server.port));
  await admin.acl('SETUSER', 'app', 'on', '>of-the-app', '~*', '&*', '+@all');
  const redisUrl = `redis://app:of-the-app@127.0.0.1:${server.port}`;
  const testApp = await startTestApp({ workers: false, redisUrl });
  expect(await readiness(testApp)).toEqual({ status: 200, jobs: '' });
  const size = { contacts: 120, conversations: 100 };
  const company = await testApp.control.addCompany({ name: 'Refused', plan: 'enterprise', ...size });
  const browser = testApp.session();
  const id = await install(browser, company);
  return { admin, testApp, isCopied: () => waitForStatus(browser, id, isSynced) };
}

/** Resolves when readiness names both queues with the reason. */
const notReady = (testApp: TestApp, reason: string) =>
  waitFor(async () => {
    const { status, jobs } = await readiness(testApp);
    const told = (queue: string) => new RegExp(`“${queue}” are waited for cannot be used\\. (?:${reason})`);
    return status === 503 && ['sync', 'upkeep'].every((queue) => told(queue).test(jobs));
  });
const ready = (testApp: TestApp) => waitFor(async () => (await readiness(testApp)).status === 200);

test.skipIf(!isRealRedis)(
  'connections on which jobs are waited for that find no place in Redis are told once, with their queues, readiness names them, and all goes on when there is room',
  async () => {
    const { admin, testApp, isCopied } = await begin();
    const usual = ((await admin.config('GET', 'maxclients')) as string[])[1] ?? '';
    const [, used = ''] = /connected_clients:(\d+)/.exec(await admin.info('clients')) ?? [];
    // Room for the connection that the workers share, but for none on which they wait.
    await admin.config('SET', 'maxclients', String(Number(used) + 1));
    const from = testApp.log.lines.length;
    const workers = testApp.app.startWorkers();
    // Redis says why as it closes the connection, and now and then its words get lost.
    await notReady(testApp, 'ERR max number of clients|Redis is away, or takes no more connections');
    const unusable = async () => (await testApp.session().get('/metrics')).body;
    expect(await unusable()).toMatch(/^sync_unusable_connections 2$/m);
    await admin.config('SET', 'maxclients', usual);
    await ready(testApp);
    expect(await unusable()).toMatch(/^sync_unusable_connections 0$/m);
    await isCopied();
    for (const queue of ['sync', 'upkeep']) {
      expect(told(testApp, from, queue).map(([level, msg]) => [level, msg])).toEqual([
        ['error', 'Redis cannot be reached, trying on'],
        ['info', 'Redis is reachable again'],
      ]);
    }
    await workers.close();
    admin.disconnect();
  },
);

test.skipIf(!isRealRedis)(
  'a Redis that forbids waiting for jobs is told once a queue, in its words, readiness says so, and all goes on when it is allowed',
  async () => {
    const { admin, testApp, isCopied } = await begin();
    await admin.acl('SETUSER', 'app', '-@blocking');
    const from = testApp.log.lines.length;
    const workers = testApp.app.startWorkers();
    await notReady(testApp, "NOPERM .*'bzpopmin'");
    await admin.acl('SETUSER', 'app', '+@blocking');
    await ready(testApp);
    await isCopied();
    for (const queue of ['sync', 'upkeep']) {
      expect(told(testApp, from, queue)).toEqual([
        ['error', 'Redis forbids what the queue needs', expect.stringMatching(/^NOPERM .*'bzpopmin'/)],
        ['info', 'Redis lets the worker wait for jobs again', undefined],
      ]);
    }
    await workers.close();
    admin.disconnect();
  },
);

test.skipIf(!isRealRedis)(
  'a Redis, or a proxy, that does not know how to wait for jobs is told once a queue, readiness says so, and all goes on with one that does',
  async () => {
    const server = await startRedisServer({ 'rename-command': 'BZPOPMIN ""' });
    const proxy = await startTcpProxy(server.port);
    const testApp = await startTestApp({ workers: false, redisUrl: redisUrlAt(proxy.port) });
    const from = testApp.log.lines.length;
    const workers = testApp.app.startWorkers();
    await notReady(testApp, "ERR unknown command 'bzpopmin'");
    const inBetween = testApp.log.lines.length;
    for (const queue of ['sync', 'upkeep']) {
      expect(told(testApp, from, queue)).toEqual([
        [
          'error',
          'Redis forbids what the queue needs',
          expect.stringMatching(/^ERR unknown command 'bzpopmin'/),
        ],
      ]);
    }

    proxy.lead((await startRedisServer()).port);
    proxy.breakOff();
    await ready(testApp);
    const goesOn = 'Redis lets the worker wait for jobs again';
    const isOver = (queue: string) => told(testApp, inBetween, queue).some(([, msg]) => msg === goesOn);
    await waitFor(() => isOver('sync') && isOver('upkeep'));
    await workers.close();
  },
);

test.skipIf(!isRealRedis)(
  'a Redis in cluster mode is not taken for one that works: readiness and the alarm of the upkeep tell',
  async () => {
    const busPort = String(await findFreePort());
    const server = await startRedisServer({ 'cluster-enabled': 'yes', 'cluster-port': busPort });
    const admin = new Redis(redisUrlAt(server.port));
    await admin.cluster('ADDSLOTSRANGE', 0, 16_383);
    await waitFor(async () => /state:ok/.test(String(await admin.cluster('INFO'))));
    const testApp = await startTestApp({ workers: false, redisUrl: redisUrlAt(server.port) });
    const workers = testApp.app.startWorkers();
    await waitFor(() =>
      testApp.log.lines.some(({ msg }) => msg === 'the schedules could not be looked after'),
    );
    const late = async () =>
      Number(/^sync_upkeep_late_seconds (\S+)$/m.exec((await testApp.session().get('/metrics')).body)?.[1]);
    expect(await late()).toBe(0);
    const now = performance.now();
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      // Theirs begins at 0.
      vi.advanceTimersByTime(now + 301_000);
      expect(await late()).toBeGreaterThan(300);
    } finally {
      vi.useRealTimers();
    }
    const answer = await testApp.session().get('/readyz');
    expect(answer.status).toBe(503);
    expect(answer.body).toMatch(/"redis":"Redis runs in cluster mode, .*: CROSSSLOT /);
    await workers.close();
    admin.disconnect();
  },
);
