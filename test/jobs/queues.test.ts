import { DelayedError, type Job, Worker } from 'bullmq';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { createQueues, type ListJobData, QUEUE, workerName } from '../../jobs/queues.ts';
import { syncJob } from '../../jobs/workers.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import type { Lagging } from '../../src/store/changes.ts';
import type { ListJob } from '../../src/store/runs.ts';
import type { SliceContext, SyncParts } from '../../src/sync/parts.ts';
import { openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

const HOUR_MS = 3_600_000;
const TOKEN = 'token';

const { logger } = testLogger();
const { url } = await startTestRedis();
const redis = createRedis(url, 'general', logger);
const queues = createQueues(redis, 'one', logger);
const store = await openTestStore('sqlite');
const connections = [redis];
const workers: Worker[] = [];

/** A worker that takes a job only when the test asks for one. */
function workerOf<Data>(queue: string): Worker<Data> {
  const connection = createRedis(url, 'worker', logger);
  connections.push(connection);
  const worker = new Worker<Data>(queue, null, { connection, prefix: queues.prefix, autorun: false });
  workers.push(worker);
  return worker;
}
const sync = workerOf<ListJobData>(QUEUE.sync);
const deliver = workerOf<Lagging>(QUEUE.deliver);
beforeEach(() => redis.flushall());
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await queues.close();
  for (const connection of connections) connection.disconnect();
});

const take = <Data>(worker: Worker<Data>) => worker.getNextJob(TOKEN, { block: false });
const taken = async <Data>(worker: Worker<Data>): Promise<Job<Data>> =>
  (await take(worker)) ?? expect.unreachable('no job is there');
/** A list that needs a job: its full run, or a check. */
const jobOf = (list: number, until: number | null = null, pages?: number): ListJob => ({
  instanceId: `ins_${list}`,
  resource: 'contacts',
  list,
  until,
  pages,
});
const list = { instanceId: 'ins_1', resource: 'contacts', consumer: 'handler' };

test('a list has one job, which carries only its names', async () => {
  await queues.enqueueLists([jobOf(1), jobOf(2)]);
  await queues.enqueueLists([jobOf(1)]);
  expect(await queues.syncCounts()).toEqual({ waiting: 2, active: 0, delayed: 0, failed: 0 });
  expect((await taken(sync)).data).toEqual({ instanceId: 'ins_1', resource: 'contacts', list: 1 });
});

test('the job of a waiting run starts at its time, or now when a person asks', async () => {
  await queues.enqueueLists([jobOf(1, Date.now() + HOUR_MS)]);
  expect(await queues.syncCounts()).toMatchObject({ waiting: 0, delayed: 1 });
  expect(await take(sync)).toBeUndefined();
  await queues.enqueueLists([jobOf(1, null)]);
  expect(await queues.syncCounts()).toMatchObject({ delayed: 1 });
  await queues.enqueueLists([jobOf(1, null)], { now: true });
  expect((await taken(sync)).id).toBe('list-1');
});

test('a list has one delivery, and one more when it changes meanwhile', async () => {
  await queues.enqueueDeliveries([list, { ...list, resource: 'conversations' }]);
  await queues.enqueueDeliveries([list]);
  const [first, second] = [await taken(deliver), await taken(deliver)];
  expect([first.data, second.data.resource]).toEqual([list, 'conversations']);
  expect(await take(deliver)).toBeUndefined();
  for (let times = 0; times < 3; times++) await queues.enqueueDeliveries([list]);
  expect(await take(deliver)).toBeUndefined();
  await second.moveToCompleted(undefined, TOKEN, false);
  expect(await take(deliver)).toBeUndefined();
  await first.moveToCompleted(undefined, TOKEN, false);
  const third = await taken(deliver);
  expect(third.data).toEqual(list);
  await third.moveToCompleted(undefined, TOKEN, false);
  expect(await take(deliver)).toBeUndefined();
});

test('a waiting delivery starts now when a person asks', async () => {
  await queues.enqueueDeliveries([list]);
  const job = await taken(deliver);
  await job.moveToDelayed(Date.now() + HOUR_MS, TOKEN);
  await queues.enqueueDeliveries([list]);
  expect(await take(deliver)).toBeUndefined();
  await queues.startDelayed([{ ...list, resource: 'conversations' }]);
  expect(await take(deliver)).toBeUndefined();
  await queues.startDelayed([list]);
  expect((await taken(deliver)).id).toBe(job.id);
});

test('the search index has a queue of its own', async () => {
  await queues.enqueueDeliveries([{ ...list, consumer: 'search' }]);
  expect(await take(deliver)).toBeUndefined();
  expect((await taken(workerOf<Lagging>(QUEUE.index))).data.consumer).toBe('search');
});

test('checks go first, then the runs with the fewest pages', async () => {
  // A slice that begins at a shutdown yields before its first request.
  const resources = [{ name: 'contacts', title: 'Contacts', route: '/contacts' }];
  const parts = { ...store, resources, api: {} } as unknown as SyncParts;
  const context: SliceContext = { logger, signal: AbortSignal.abort(), othersWait: () => true };
  async function begin(pages: number, known: number | undefined = pages) {
    const claim = await store.claimRun();
    for (let page = 1; page <= pages; page++)
      await store.write(claim, [], { next: `https://x.example/${page}` });
    await queues.enqueueLists([{ ...claim, until: null, pages: known }]);
    return claim.instanceId;
  }
  async function slices(count: number): Promise<string[]> {
    const order: string[] = [];
    for (let turn = 0; turn < count; turn++) {
      const job = await taken(sync);
      order.push(job.data.instanceId);
      await expect(syncJob(parts, job, TOKEN, context)).rejects.toThrow(DelayedError);
    }
    return order;
  }
  const [small, fresh] = [await begin(1), await begin(0)];
  await queues.enqueueLists([jobOf(99)]);
  const check = await taken(sync);
  expect(check.id).toBe('list-99');
  await check.moveToCompleted(undefined, TOKEN, false);
  expect(await slices(2)).toEqual([fresh, fresh]);
  await (await taken(sync)).moveToCompleted(undefined, TOKEN, false);
  // A job that was enqueued for a check, or for a shorter run, learns how far its run is.
  const giant = await begin(9, 0);
  expect(await slices(3)).toEqual([giant, small, small]);
});

test('what a person starts goes before all others, also where its job waits', async () => {
  await queues.enqueueLists([
    jobOf(1),
    jobOf(2, null, 0),
    jobOf(3, null, 5),
    jobOf(4, Date.now() + HOUR_MS, 7),
  ]);
  const order = async (count: number) => {
    const ids: (string | undefined)[] = [];
    while (ids.length < count) {
      const job = await taken(sync);
      ids.push(job.id);
      await job.moveToCompleted(undefined, TOKEN, false);
    }
    return ids;
  };
  await queues.enqueueLists([jobOf(5, null, 9)], { now: true });
  await queues.enqueueLists([jobOf(3, null, 5)], { now: true });
  await queues.enqueueLists([jobOf(4, null, 7)], { now: true });
  expect(await order(5)).toEqual(['list-4', 'list-3', 'list-5', 'list-1', 'list-2']);
});

test('a job that an older version left behind ends', async () => {
  const old = { data: { instanceId: 'ins_1', resource: 'contacts' }, priority: 0 } as Job<ListJobData>;
  const context: SliceContext = { logger, signal: AbortSignal.abort(), othersWait: () => true };
  expect(await syncJob({} as SyncParts, old, TOKEN, context)).toBeUndefined();
});

test('workers are listed with the id, the version and the start of their process', async () => {
  const own = createQueues(redis, 'three', logger);
  const before = Date.now();
  const name = workerName({ processId: 'a1b2', version: '1.2.3-rc.1' });
  const connection = createRedis(url, 'worker', logger);
  connections.push(connection);
  const worker = new Worker(QUEUE.sync, async () => undefined, { connection, prefix: own.prefix, name });
  await expect.poll(() => own.workers()).toHaveLength(1);
  const [one] = (await own.workers()) ?? [];
  expect(one).toMatchObject({ id: 'a1b2', version: '1.2.3-rc.1' });
  expect(Date.parse(one?.startedAt ?? '')).toBeGreaterThanOrEqual(before);
  await worker.close();
  await own.close();
});

test('a worker is known by its heartbeats for some minutes, and not when it has ended', async () => {
  const own = createQueues(redis, 'four', logger);
  const beat = { version: '1.2.3', startedAt: Date.now() - 9_000, at: Date.now(), delivery: 'ready' };
  await own.beat('w1', beat);
  await own.beat('w2', { ...beat, startedAt: beat.startedAt - 1 });
  await own.beat('gone', { ...beat, at: Date.now() - 301_000 });
  expect((await own.heartbeats())?.map(({ id }) => id)).toEqual(['w2', 'w1']);
  await own.beat('w2');
  expect(await own.heartbeats()).toEqual([{ id: 'w1', ...beat }]);
  expect(await redis.hkeys('four:workers')).toEqual(['w1']);
  await own.close();
});

test('jobs and workers are unknown while Redis is away', async () => {
  await queues.enqueueLists([jobOf(1)]);
  const [ofSync] = (await queues.counts()) ?? [];
  expect(ofSync).toEqual({ name: 'sync', counts: { waiting: 1, active: 0, delayed: 0, failed: 0 } });
  const away = createRedis('redis://127.0.0.1:1', 'general', logger);
  connections.push(away);
  const without = createQueues(away, 'one', logger);
  expect([await without.counts(), await without.workers()]).toEqual([undefined, undefined]);
});
