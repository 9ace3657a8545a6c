import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { LONGEST_RETRY_AFTER_MS } from '../src/client/retry-timing.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { RunKey, UnfinishedRun } from '../src/store/runs.ts';
import { forBullmq, isForbidden } from './bullmq-redis.ts';

/** The queues by their names in Redis. */
export const QUEUE = { sync: 'sync', upkeep: 'upkeep' } as const;

/** What a sync job carries: ids only, never a token or an address. Another version's may carry more. */
export type SyncJobData = RunKey;

/** Whether this is what a sync job carries: what lies in Redis may be of another version of the app. */
export function isSyncJobData(data: unknown): data is SyncJobData {
  const { instanceId, resource } = Object(data) as Partial<Record<keyof SyncJobData, unknown>>;
  return typeof instanceId === 'string' && typeof resource === 'string';
}

/** Producers of both queues. */
export interface Queues {
  sync: Queue<SyncJobData>;
  upkeep: Queue;
  /**
   * Sees to it that these runs have a job; one that has is left alone, unless it is told to hurry. One that has none, as
   * Redis lost it, gets it for the moment until which it waits: the budget may have lost what the service asked for.
   */
  enqueue(runs: readonly UnfinishedRun[], options?: { hurry?: boolean }): Promise<void>;
  /**
   * Has the sync jobs go on now that wait for a moment behind this one; the budget still decides when their requests go.
   *
   * @param moment milliseconds since 1970
   * @returns how many
   */
  bringForward(moment: number): Promise<number>;
  /** How many sync jobs wait for a place in a worker, are in one, and wait for their time. */
  syncCounts(): Promise<{ waiting: number; active: number; delayed: number }>;
  /** By how much the upkeep that was to come round first is late, in milliseconds; 0 also where none is in Redis. */
  upkeepLateMs(): Promise<number>;
  /** @throws Error that says so where BullMQ does not work with this Redis, as one that is too old */
  check(): Promise<void>;
  /** Of both queues, by the states that they have in Redis. */
  counts(): Promise<{ name: string; counts: Record<string, number> }[]>;
  close(): Promise<void>;
}

// Ended jobs vanish: what is worth keeping about a run stands in the store, and its job's id must come free.
const FORGOTTEN = { removeOnComplete: true, removeOnFail: true } as const;

/** BullMQ's order of the jobs that wait for a moment: so many places for each millisecond since 1970. */
const SCORES_PER_MS = 0x1000;

/** Of the errors of a queue one is told in so many milliseconds. */
const TOLD_EVERY_MS = 1_000;

/** How long {@link Queues.check} waits, in milliseconds: BullMQ asks as soon as the connection is there. */
const CHECK_LIMIT_MS = 400;

/** Jobs that are brought forward at a time. */
const PORTION = 500;

/** @param redis fails fast, so that a button does not hang while Redis is away */
export function createQueues(redis: Redis, logger: Logger): Queues {
  const closing = new AbortController();
  const connection = forBullmq(redis, closing.signal);
  const sync = new Queue<SyncJobData>(QUEUE.sync, { connection, defaultJobOptions: FORGOTTEN });
  const upkeep = new Queue(QUEUE.upkeep, { connection, defaultJobOptions: FORGOTTEN });
  for (const queue of [sync, upkeep]) queue.on('error', connectionTrouble(logger, queue.name));
  return {
    sync,
    upkeep,
    async enqueue(runs, options = {}) {
      await sync.addBulk(
        runs.map(({ instanceId, resource, until = 0 }) => {
          const jobId = syncJobId({ instanceId, resource });
          // A moment that lies further ahead was noted by another clock.
          const delay = Math.min(Math.max(0, until - Date.now()), LONGEST_RETRY_AFTER_MS);
          return { name: resource, data: { instanceId, resource }, opts: { jobId, delay } };
        }),
      );
      if (options.hurry) await Promise.all(runs.map((run) => hurry(sync, run)));
    },
    bringForward: (moment) => bringForward(sync, redis, moment),
    async syncCounts() {
      // Those that have given way have a priority, see give-way.ts, and wait in a place of their own.
      const counts = await sync.getJobCounts('waiting', 'prioritized', 'active', 'delayed');
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
      return { waiting: waiting + prioritized, active, delayed };
    },
    async upkeepLateMs() {
      const [first] = await upkeep.getJobSchedulers(0, 0, true);
      return Math.max(0, Date.now() - (first?.next ?? Number.POSITIVE_INFINITY));
    },
    async check() {
      const fail = (why: string) => {
        throw new Error(`The queues (BullMQ) do not work with this Redis: ${why}`);
      };
      const late = sleep(CHECK_LIMIT_MS, 'it has not told its version.', { ref: false }).then(fail);
      // BullMQ looks when it begins, and keeps what it has found.
      const found = ({ message }: Error) => fail(`${message}. Start the app again with a newer one.`);
      await Promise.race([sync.waitUntilReady().catch(found), late]);
    },
    counts: () =>
      Promise.all(
        [sync, upkeep].map(async (queue) => ({ name: queue.name, counts: await queue.getJobCounts() })),
      ),
    async close() {
      closing.abort();
      await Promise.all([sync.close(), upkeep.close()]);
    },
  };
}

/**
 * Listens to the errors of a queue or a worker. They come with every try to connect again, and with everything that a
 * Redis refuses; that it is away, the connection itself has said once. What it forbids is told once a process.
 */
export function connectionTrouble(logger: Logger, queue: string): (error: Error) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  const forbidden = new Set<string>();
  return (error) => {
    if (isForbidden(error)) {
      if (forbidden.has(error.message) || isToldByItself(error)) return;
      forbidden.add(error.message);
      logger.error({ queue, err: error }, 'Redis forbids what the queue needs');
      return;
    }
    const now = performance.now();
    if (now - toldAt < TOLD_EVERY_MS) return;
    toldAt = now;
    logger.debug({ queue, err: error }, 'the queue has trouble with Redis');
  };
}

/** A connection on which jobs are waited for sees itself when that is forbidden, and when no more: worker-connections.ts. */
function isToldByItself(error: Error & { command?: { name: string } }): boolean {
  return error.command?.name === 'bzpopmin';
}

/** One job a run at the most: adding it again while it is there changes nothing. */
function syncJobId({ instanceId, resource }: RunKey): string {
  return `${instanceId}.${resource}`;
}

/** Brings a job that waits for its time forward; the budget still decides when its request goes. */
async function hurry(queue: Queue<SyncJobData>, run: RunKey): Promise<void> {
  await promote(queue, syncJobId(run));
}

async function promote(queue: Queue<SyncJobData>, jobId: string): Promise<void> {
  const job = await queue.getJob(jobId);
  if (job === undefined || !(await job.isDelayed())) return;
  // It may have started by itself in between: then there is nothing left to bring forward.
  await job.promote().catch(() => undefined);
}

/**
 * From the far end, a portion after the other, and no more than there were at first: those that go on wait again soon.
 */
async function bringForward(queue: Queue<SyncJobData>, redis: Redis, moment: number): Promise<number> {
  const delayed = queue.toKey('delayed');
  const behind = (moment + 1) * SCORES_PER_MS;
  const found = await redis.zcount(delayed, behind, '+inf');
  for (let left = found; left > 0; left -= PORTION) {
    const ids = await redis.zrevrangebyscore(delayed, '+inf', behind, 'LIMIT', 0, Math.min(left, PORTION));
    await Promise.all(ids.map((id) => promote(queue, id)));
  }
  return found;
}
