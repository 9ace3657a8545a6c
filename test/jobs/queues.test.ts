import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'bullmq';
import { afterAll, expect, test, vi } from 'vitest';
import { connectionTrouble, createQueues, QUEUE, type SyncJobData } from '../../jobs/queues.ts';
import { keepSchedules, UPKEEP } from '../../jobs/schedules.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { isRealRedis } from '../support/redis-server.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const { logger } = testLogger();
const { url } = await startTestRedis();
const redis = createRedis(url, 'general', logger);
const queues = createQueues(redis, logger);
const workerRedis = createRedis(url, 'worker', logger);
afterAll(async () => {
  await queues.close();
  redis.disconnect();
  workerRedis.disconnect();
});

const RUN = { instanceId: 'ins_1', resource: 'contacts' };
const OTHER = { instanceId: 'ins_1', resource: 'conversations' };

async function empty(): Promise<void> {
  await queues.sync.obliterate({ force: true });
}

test('a run has one job, however often it is asked for, and no secrets in it', async () => {
  await empty();
  await queues.enqueue([RUN, OTHER]);
  await queues.enqueue([RUN]);
  const jobs = await queues.sync.getJobs();
  expect(jobs.map(({ data }) => data).toSorted((a, b) => a.resource.localeCompare(b.resource))).toEqual([
    RUN,
    OTHER,
  ]);
  expect((await queues.counts()).find(({ name }) => name === 'sync')?.counts).toMatchObject({ waiting: 2 });
});

test('a job that waits for its time stays there, unless it is told to hurry', async () => {
  await empty();
  await queues.enqueue([RUN]);
  const [job] = await queues.sync.getJobs();
  const worker = new Worker<SyncJobData>(QUEUE.sync, null, { connection: workerRedis, autorun: false });
  const active = await worker.getNextJob('token');
  await active?.moveToDelayed(Date.now() + 3_600_000, 'token');

  await queues.enqueue([RUN]);
  expect(await job?.getState()).toBe('delayed');
  await queues.enqueue([RUN], { hurry: true });
  expect(await job?.getState()).toBe('waiting');
  expect((await queues.sync.getJobs()).length).toBe(1);
  await worker.close();
});

test('to hurry what is not waiting for its time changes nothing', async () => {
  await empty();
  await queues.enqueue([RUN], { hurry: true });
  await queues.enqueue([RUN], { hurry: true });
  expect((await queues.sync.getJobs()).length).toBe(1);
});

test('a run whose job was lost gets it for the moment until which it waits, fifteen minutes ahead at the most', async () => {
  await empty();
  const MINUTE_MS = 60_000;
  const PAST = { instanceId: 'ins_2', resource: 'contacts' };
  vi.useFakeTimers({ toFake: ['Date'] });
  try {
    const now = Date.now();
    await queues.enqueue([
      { ...RUN, until: now + 10 * MINUTE_MS },
      { ...OTHER, until: now + 24 * 60 * MINUTE_MS },
      { ...PAST, until: now - MINUTE_MS },
    ]);
    const jobs = await queues.sync.getJobs();
    const jobOf = (run: typeof RUN) => jobs.find(({ data }) => isDeepStrictEqual(data, run));
    const delayOf = (run: typeof RUN) => jobOf(run)?.opts.delay;
    expect([RUN, OTHER, PAST].map(delayOf)).toEqual([10 * MINUTE_MS, 15 * MINUTE_MS, 0]);
    expect(await jobOf(RUN)?.getState()).toBe('delayed');
    expect(await jobOf(PAST)?.getState()).toBe('waiting');
    // Whoever wants it now, has it now.
    await queues.enqueue([RUN], { hurry: true });
    expect(await jobOf(RUN)?.getState()).toBe('waiting');
  } finally {
    vi.useRealTimers();
  }
});

test('a job that has ended makes room for the next one of its run', async () => {
  await empty();
  let done = 0;
  const worker = new Worker<SyncJobData>(
    QUEUE.sync,
    async () => {
      done++;
      if (done === 2) throw new Error('broken');
    },
    { connection: workerRedis },
  );
  for (const expected of [1, 2, 3]) {
    await queues.enqueue([RUN]);
    await waitFor(async () => done === expected && (await queues.sync.getJobs()).length === 0);
  }
  await worker.close();
  expect(done).toBe(3);
});

test('schedules are there once, from however many workers, and come round at once when a worker starts', async () => {
  const watches = [0, 1, 2].map(() => keepSchedules(queues, logger, 60 * 60_000));
  const names = Object.values(UPKEEP).toSorted();
  await waitFor(async () => (await queues.upkeep.getJobSchedulersCount()) === names.length);
  const waiting = await waitFor(async () => {
    const jobs = await queues.upkeep.getJobs(['waiting']);
    return jobs.length >= names.length ? jobs : undefined;
  });
  expect([...new Set(waiting.map(({ name }) => name))].toSorted()).toEqual(names);
  const schedulers = await queues.upkeep.getJobSchedulers();
  expect(schedulers.map(({ name }) => name).toSorted()).toEqual(names);
  for (const { end } of watches) end();
});

test('a Redis that lost everything has its schedules back with the next worker', async () => {
  await redis.flushall();
  const { end } = keepSchedules(queues, logger, 60 * 60_000);
  await waitFor(async () => (await queues.upkeep.getJobSchedulersCount()) === Object.keys(UPKEEP).length);
  end();
  expect((await queues.upkeep.getJobSchedulers()).every(({ every }) => every === 30_000)).toBe(true);
});

test('that the upkeep does not come round is seen by how late it is', async () => {
  await redis.flushall();
  expect(await queues.upkeepLateMs()).toBe(0);
  const { end } = keepSchedules(queues, logger, 60 * 60_000);
  await waitFor(async () => (await queues.upkeep.getJobSchedulersCount()) === Object.keys(UPKEEP).length);
  end();
  const schedulers = await queues.upkeep.getJobSchedulers();
  const first = Math.min(...schedulers.map(({ next }) => next ?? Number.NaN));
  vi.useFakeTimers({ toFake: ['Date'], now: first - 1 });
  try {
    expect(await queues.upkeepLateMs()).toBe(0);
    vi.setSystemTime(first + 600_000);
    expect(await queues.upkeepLateMs()).toBe(600_000);
  } finally {
    vi.useRealTimers();
  }
});

test.skipIf(!isRealRedis)(
  'schedules that cannot be put in are late since the worker started, until they are in',
  async () => {
    await redis.flushall();
    const { logger: told, lines } = testLogger();
    await redis.config('SET', 'maxmemory', '1');
    vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
    try {
      const { lateMs, end } = keepSchedules(queues, told, 60 * 60_000);
      await waitFor(() => lines.length === 1);
      expect(lateMs()).toBe(0);
      for (let looks = 2; looks <= 30; looks++) {
        vi.advanceTimersByTime(15_000);
        await waitFor(() => lines.length === looks);
      }
      expect(await queues.upkeepLateMs()).toBe(0);
      expect(lateMs()).toBe(29 * 15_000);
      await redis.config('SET', 'maxmemory', '0');
      vi.advanceTimersByTime(15_000);
      await waitFor(() => lateMs() === 0);
      end();
    } finally {
      vi.useRealTimers();
    }
  },
);

test('of the errors of a queue, one a second is told', () => {
  const { logger: told, lines } = testLogger();
  const onError = connectionTrouble(told, 'sync');
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    for (let times = 0; times < 30; times++) {
      onError(new Error(`OOM ${times}`));
      vi.advanceTimersByTime(100);
    }
  } finally {
    vi.useRealTimers();
  }
  expect(lines.map(({ err }) => (err as Error).message)).toEqual(['OOM 0', 'OOM 10', 'OOM 20']);
});

test('what Redis forbids to a queue is told once each, as an error and in its words', () => {
  const { logger: told, lines } = testLogger();
  const onError = connectionTrouble(told, 'sync');
  const direct = "NOPERM this user has no permissions to run the 'evalsha' command";
  const inScript =
    "ERR The user executing the script can't run this command or subcommand script: f0, on @user_script:1.";
  for (const message of [direct, direct, inScript, direct, inScript]) onError(new Error(message));
  // The connection on which jobs are waited for tells that by itself, as it sees when it is over.
  const waiting = new Error("NOPERM this user has no permissions to run the 'bzpopmin' command");
  onError(Object.assign(waiting, { command: { name: 'bzpopmin', args: [] } }));
  expect(lines.map(({ level, queue, msg, err }) => [level, queue, msg, (err as Error).message])).toEqual(
    [direct, inScript].map((message) => ['error', 'sync', 'Redis forbids what the queue needs', message]),
  );
});
