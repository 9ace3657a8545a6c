import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from '../src/runtime/logging.ts';
import type { Lagging } from '../src/store/changes.ts';
import { SEARCH_CONSUMER } from '../src/store/records.ts';
import type { ListKey, OpenRun } from '../src/store/runs.ts';

/** The queues by their names in Redis: runs, deliveries to the handler, and deliveries to the search index. */
export const QUEUE = { sync: 'sync', deliver: 'deliver', index: 'index' } as const;

/** After this time a silent Redis counts as away, in milliseconds. */
const ANSWER_LIMIT_MS = 1_500;

// The database remembers how a job ended, and the job's id must become free.
const REMOVED = { removeOnComplete: true, removeOnFail: true } as const;

/** Producers of all queues. */
export type Queues = ReturnType<typeof createQueues>;

/**
 * @param redis fails fast: a button must not hang while Redis is away
 * @param installation id of the database, which separates two installations on one Redis
 */
export function createQueues(redis: Redis, installation: string, logger: Logger) {
  const prefix = `${installation}:bull`;
  const options = { connection: redis, prefix, defaultJobOptions: REMOVED };
  // Jobs carry the names of lists: never a token or a URL.
  const sync = new Queue<ListKey>(QUEUE.sync, options);
  const deliver = new Queue<Lagging>(QUEUE.deliver, options);
  const index = new Queue<Lagging>(QUEUE.index, options);
  const queues = [sync, deliver, index];
  for (const queue of queues) {
    queue.on('error', (err) => logger.debug({ queue: queue.name, err }, 'the queue cannot use Redis'));
  }
  return {
    /** The beginning of BullMQ's keys. */
    prefix,
    /** Gives each run a job, unless it has one. `now` starts a job that waits for its time. */
    async enqueueRuns(runs: readonly OpenRun[], { now = false } = {}): Promise<void> {
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
    /** Gives each list a delivery that starts after this call, even while another one runs. */
    async enqueueDeliveries(lists: readonly Lagging[], { now = false } = {}): Promise<void> {
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
    /** Counts the sync jobs by state. */
    syncCounts: () => countJobs(sync),
    /** Counts the jobs of all queues; undefined while Redis is away. */
    counts: () =>
      ifAnswered(redis, () =>
        Promise.all(queues.map(async (queue) => ({ name: queue.name, counts: await countJobs(queue) }))),
      ),
    /** Lists the worker processes; undefined while Redis is away or hides its clients. */
    workers: () =>
      ifAnswered(redis, async () => {
        const clients = await sync.getWorkers();
        // Where Redis refuses to list its clients, BullMQ answers one without a name.
        return clients.some(({ rawname }) => rawname === undefined)
          ? undefined
          : clients.map(({ rawname = '' }) => readWorkerName(rawname));
      }),
    async close(): Promise<void> {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

async function countJobs(queue: Queue) {
  const counts = await queue.getJobCounts('waiting', 'prioritized', 'active', 'delayed', 'failed');
  const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { waiting: waiting + prioritized, active, delayed, failed };
}

/** Asks Redis for a page: undefined when Redis is away, fails or is slow. */
async function ifAnswered<T>(redis: Redis, ask: () => Promise<T>): Promise<T | undefined> {
  if (redis.status !== 'ready') return undefined;
  return Promise.race([ask(), sleep(ANSWER_LIMIT_MS, undefined, { ref: false })]).catch(() => undefined);
}

/** Names the workers of this process, from now. BullMQ puts the name behind `:w:` in their connections' names. */
export function workerName({ processId, version }: { processId: string; version: string }): string {
  return [processId, version, Date.now()].join('/');
}

function readWorkerName(clientName: string) {
  const [id = '', version = '', startedAt] = clientName.slice(clientName.lastIndexOf(':') + 1).split('/');
  const at = new Date(Number(startedAt));
  return { id, version, startedAt: Number.isNaN(at.getTime()) ? null : at.toISOString() };
}

/** BullMQ refuses ids that are numbers. */
function jobIdOf(run: number): string {
  return `run-${run}`;
}

function dedupIdOf({ instanceId, resource, consumer }: Lagging): string {
  return `${instanceId}.${resource}.${consumer}`;
}

/** Starts a job that waits for its time. */
async function promote<Data>(queue: Queue<Data>, jobId: string | null): Promise<void> {
  const job = jobId === null ? undefined : await queue.getJob(jobId);
  if (job === undefined || !(await job.isDelayed())) return;
  // The job may have started in between.
  await job.promote().catch(() => undefined);
}
