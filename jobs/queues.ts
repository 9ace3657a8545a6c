import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from '../src/runtime/logging.ts';
import type { Lagging } from '../src/store/changes.ts';
import { SEARCH_CONSUMER } from '../src/store/records.ts';
import type { ListKey, OpenRun } from '../src/store/runs.ts';

/** The queues by their names in Redis: runs, deliveries to the handler, and those to the search index. */
export const QUEUE = { sync: 'sync', deliver: 'deliver', index: 'index' } as const;

/** What a sync job carries: never a token or an address. */
export type SyncJobData = ListKey;

/** What a delivery carries. */
export type DeliverJobData = Lagging;

/** Jobs of a queue: those that wait for a slot in a worker, are in one, wait for their time, and have failed. */
export type JobCounts = Record<'waiting' | 'active' | 'delayed' | 'failed', number>;

/** A worker process: its id and its version stand in its log, too. */
export interface WorkerProcess {
  id: string;
  version: string;
  /** ISO 8601; null when it cannot be told. */
  startedAt: string | null;
}

/** Producers of all queues. */
export interface Queues {
  /** What BullMQ's keys begin with. */
  prefix: string;
  /** Sees to it that these runs have a job; `now` brings those forward that wait for a retry. */
  enqueueRuns(runs: readonly OpenRun[], options?: { now?: boolean }): Promise<void>;
  /** Sees to it that these lists have a delivery behind this moment, also where one is under way. */
  enqueueDeliveries(lists: readonly Lagging[], options?: { now?: boolean }): Promise<void>;
  /** Of the sync jobs. */
  syncCounts(): Promise<JobCounts>;
  /** Of all queues; undefined while Redis is away. */
  counts(): Promise<{ name: string; counts: JobCounts }[] | undefined>;
  /** The worker processes that take jobs; undefined while Redis is away, or where it does not tell. */
  workers(): Promise<WorkerProcess[] | undefined>;
  close(): Promise<void>;
}

/** After so long a silent Redis counts as away, in milliseconds. */
const ANSWER_LIMIT_MS = 1_500;

/** How often it is looked whether workers run, in milliseconds. */
const LOOK_EVERY_MS = 3_000;

/** Looks in a row that see no worker before it counts: one that is restarted is soon back. */
const LOOKS = 2;

// What is worth keeping about a job stands in the database, and its id must come free.
const FORGOTTEN = { removeOnComplete: true, removeOnFail: true } as const;

/**
 * @param redis fails fast, so that a button does not hang while Redis is away
 * @param installation the id of the database: two installations on one Redis do not meet
 */
export function createQueues(redis: Redis, installation: string, logger: Logger): Queues {
  const prefix = `${installation}:bull`;
  const options = { connection: redis, prefix, defaultJobOptions: FORGOTTEN };
  const sync = new Queue<SyncJobData>(QUEUE.sync, options);
  const deliver = new Queue<DeliverJobData>(QUEUE.deliver, options);
  const index = new Queue<DeliverJobData>(QUEUE.index, options);
  const queues = [sync, deliver, index];
  for (const queue of queues) {
    queue.on('error', (err) => logger.debug({ queue: queue.name, err }, 'the queue has trouble with Redis'));
  }
  return {
    prefix,
    async enqueueRuns(runs, { now = false } = {}) {
      if (runs.length === 0) return;
      await sync.addBulk(
        runs.map(({ instanceId, resource, run, until }) => ({
          name: resource,
          data: { instanceId, resource },
          opts: { jobId: jobIdOf(run), delay: now ? 0 : Math.max(0, (until ?? 0) - Date.now()) },
        })),
      );
      if (now) for (const { run } of runs) await promote(sync, jobIdOf(run));
    },
    async enqueueDeliveries(lists, { now = false } = {}) {
      for (const queue of [deliver, index]) {
        const own = lists.filter(({ consumer }) => (consumer === SEARCH_CONSUMER) === (queue === index));
        if (own.length === 0) continue;
        await queue.addBulk(
          own.map((data) => ({
            name: data.resource,
            data,
            opts: { deduplication: { id: dedupIdOf(data), keepLastIfActive: true } },
          })),
        );
        if (!now) continue;
        for (const data of own) await promote(queue, await queue.getDeduplicationJobId(dedupIdOf(data)));
      }
    },
    syncCounts: () => countJobs(sync),
    counts: () =>
      ifAnswered(redis, () =>
        Promise.all(queues.map(async (queue) => ({ name: queue.name, counts: await countJobs(queue) }))),
      ),
    workers: () =>
      ifAnswered(redis, async () => {
        const clients = await sync.getWorkers();
        // Where Redis keeps its clients to itself, BullMQ answers one without a name.
        return clients.some(({ rawname }) => rawname === undefined)
          ? undefined
          : clients.map(({ rawname = '' }) => readWorkerName(rawname));
      }),
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

async function countJobs(queue: Queue): Promise<JobCounts> {
  const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed');
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { waiting: waiting + prioritized, active, delayed, failed };
}

/** Asks Redis for what somebody looks at: undefined when it is away, fails or is slow. */
async function ifAnswered<T>(redis: Redis, ask: () => Promise<T>): Promise<T | undefined> {
  if (redis.status !== 'ready') return undefined;
  return Promise.race([ask(), sleep(ANSWER_LIMIT_MS, undefined, { ref: false })]).catch(() => undefined);
}

/** The name of this process's workers, from now: BullMQ gives it to their connections, behind `:w:`. */
export function workerName({ processId, version }: { processId: string; version: string }): string {
  return [processId, version, Date.now()].join('/');
}

function readWorkerName(clientName: string): WorkerProcess {
  const [id = '', version = '', startedAt] = clientName.slice(clientName.lastIndexOf(':') + 1).split('/');
  const at = new Date(Number(startedAt));
  return { id, version, startedAt: Number.isNaN(at.getTime()) ? null : at.toISOString() };
}

/** BullMQ takes no id that is a number. */
function jobIdOf(run: number): string {
  return `run-${run}`;
}

function dedupIdOf({ instanceId, resource, consumer }: Lagging): string {
  return `${instanceId}.${resource}.${consumer}`;
}

/** Brings a job forward that waits for its time. */
async function promote<Data>(queue: Queue<Data>, jobId: string | null): Promise<void> {
  const job = jobId === null ? undefined : await queue.getJob(jobId);
  if (job === undefined || !(await job.isDelayed())) return;
  // It may have started by itself in between.
  await job.promote().catch(() => undefined);
}

/** Whether workers run, as this process saw it last. */
export interface WorkersWatch {
  /** How many run; undefined when that cannot be told. */
  readonly count: number | undefined;
  /** Whether none has run for some seconds. */
  readonly areMissing: boolean;
  close(): void;
}

/** @param workers the worker processes that take jobs; undefined when that cannot be told */
export function watchWorkers(workers: () => Promise<readonly unknown[] | undefined>): WorkersWatch {
  let seen: number | undefined;
  let looksWithout = 0;
  const look = async () => {
    seen = (await workers())?.length;
    looksWithout = seen === 0 ? looksWithout + 1 : 0;
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    get count() {
      return seen;
    },
    get areMissing() {
      return looksWithout >= LOOKS;
    },
    close: () => clearInterval(timer),
  };
}
