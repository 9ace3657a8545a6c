import { once } from 'node:events';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { QUEUE } from '../../jobs/queues.ts';
import { countWorkers } from '../../src/runtime/living-workers.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { dirBeside } from '../../src/store/existing-file.ts';
import { readBudgetState } from '../support/budget-state.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** So slow that two requests are under way nearly all the time. */
const LATENCY_MS = 300;

const testApp = await startTestApp({ workers: false, sandbox: { latencyMs: LATENCY_MS } });
const seen = () => countWorkers(dirBeside(testApp.config.databaseUrl, 'workers'));
const worker = async () => {
  const before = seen() ?? 0;
  const process = spawnEntry('src/worker.ts', testApp.env);
  onTestFinished(async () => {
    await process.stop('SIGKILL');
  });
  await process.waitForOutput(/the workers run/);
  // It says so a moment before it is seen: one that is killed in between, nobody takes for dead.
  await waitFor(() => seen() === before + 1);
  return process;
};

async function withRedis<T>(use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(testApp.redisUrl);
  return use(redis).finally(() => redis.disconnect());
}

/** How often jobs of this instance went from a worker back to the queue, by BullMQ's recovery or by another worker. */
async function lossesOf(instanceId: string) {
  const entries = await withRedis((redis) => redis.xrange('bull:sync:events', '-', '+'));
  const events = entries
    .map(([, fields]) => Object.fromEntries(fields.map((name, at) => [name, fields[at + 1] ?? ''])))
    .filter(({ jobId }) => jobId?.startsWith(instanceId));
  const stalled = events.filter(({ event }) => event === 'stalled').length;
  const back = events.filter(({ event, prev }) => event === 'waiting' && prev === 'active').length;
  return { stalled, givenBack: back - stalled };
}

/** The rights to an instance's jobs that a worker has. */
async function locksOf(instanceId: string): Promise<[key: string, token: string][]> {
  return withRedis(async (redis) => {
    const ids = await redis.lrange('bull:sync:active', 0, -1);
    const keys = ids.filter((id) => id.startsWith(instanceId)).map((id) => `bull:sync:${id}:lock`);
    return Promise.all(keys.map(async (key) => [key, (await redis.get(key)) ?? '']));
  });
}

async function begin(name: string) {
  const company = await testApp.control.addCompany({
    name,
    plan: 'enterprise',
    contacts: 8_000,
    conversations: 8_000,
  });
  const browser = testApp.session();
  const id = await install(browser, company);
  const pages = async () => (await readStatus(browser, id)).resources.contacts?.pages ?? 0;
  const pagesBeyond = (count: number) =>
    waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) > count);
  await pagesBeyond(1);
  return { id, company, pages, pagesBeyond };
}

test('after kill -9 the next worker takes over what the dead one held, requests under way as well', async () => {
  const victim = await worker();
  const { id, company, pages, pagesBeyond } = await begin('Taken over');
  const locks = await locksOf(id);
  await victim.stop('SIGKILL');
  // They might run out before the next worker has started, on a busy machine: then BullMQ's recovery would be as quick.
  await withRedis((redis) => Promise.all(locks.map(([key, token]) => redis.set(key, token, 'PX', 600_000))));
  const before = await pages();
  const inFlight = async () =>
    Object.keys((await withRedis((redis) => readBudgetState(redis, company.id))).flight);
  const lost = await inFlight();
  expect(lost.length).toBeGreaterThan(0);

  const next = await worker();
  await pagesBeyond(before);
  expect(await lossesOf(id)).toEqual({ stalled: 0, givenBack: 2 });
  expect((await inFlight()).filter((permit) => lost.includes(permit))).toEqual([]);
  await next.stop();
});

test('a worker that lives keeps its jobs while others die and start', async () => {
  const living = await worker();
  const { id, pages, pagesBeyond } = await begin('Left alone');
  const victim = await worker();
  await victim.stop('SIGKILL');
  const next = await worker();
  await waitFor(() => /a worker died/.test(living.output() + next.output()));

  await pagesBeyond(await pages());
  // Where it gets no turn for seconds, on a busy machine, BullMQ's recovery may take some; no worker does.
  expect(await lossesOf(id)).toMatchObject({ givenBack: 0 });
  await Promise.all([living.stop(), next.stop()]);
});

test('jobs that workers elsewhere have lost go on, however often that was', async () => {
  const { app, control, log, redisUrl, session } = await startTestApp({ workers: false });
  const company = await control.addCompany({ name: 'Lost', plan: 'starter', contacts: 5, conversations: 5 });
  const browser = session();
  const id = await install(browser, company);
  const connection = createRedis(redisUrl, 'worker', log.logger);
  const options = { connection, autorun: false, stalledInterval: 20, maxStalledCount: 1_000 };
  const elsewhere = new Worker(QUEUE.sync, null, options);
  const observer = new Worker(QUEUE.sync, null, options);
  const takeAndLose = async () => {
    const job = await elsewhere.getNextJob('token');
    await connection.del(`bull:${QUEUE.sync}:${job?.id}:lock`);
  };
  await observer.startStalledCheckTimer();
  for (let loss = 1; loss <= 6; loss++) {
    const noticed = once(observer, 'stalled');
    await takeAndLose();
    await noticed;
  }
  await observer.close();
  await takeAndLose();
  const workers = app.startWorkers();
  await waitForStatus(browser, id, isSynced);
  await Promise.all([workers.close(), elsewhere.close()]);
  connection.disconnect();
  expect(log.lines.filter(({ msg }) => msg === 'a job failed')).toEqual([]);
});
