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

/** Producers of all queues. */
export interface Queues {
  /** What BullMQ's keys begin with. */
  prefix: string;
  /** Sees to it that these runs have a job; `now` brings those forward that wait for a retry. */
  enqueueRuns(runs: readonly OpenRun[], options?: { now?: boolean }): Promise<void>;
  /** Sees to it that these lists have a delivery behind this moment, also where one is under way. */
  enqueueDeliveries(lists: readonly Lagging[], options?: { now?: boolean }): Promise<void>;
  /** How many sync jobs wait for a slot in a worker, are in one, and wait for their time. */
  syncCounts(): Promise<{ waiting: number; active: number; delayed: number }>;
  /** Of all queues, by the states that they have in Redis. */
  counts(): Promise<{ name: string; counts: Record<string, number> }[]>;
  /** How many worker processes take jobs; undefined where Redis does not tell. */
  countWorkers(): Promise<number | undefined>;
  close(): Promise<void>;
}

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
    async syncCounts() {
      const counts = await sync.getJobCounts('waiting', 'prioritized', 'active', 'delayed');
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
      return { waiting: waiting + prioritized, active, delayed };
    },
    counts: () =>
      Promise.all(queues.map(async (queue) => ({ name: queue.name, counts: await queue.getJobCounts() }))),
    countWorkers: () => sync.getWorkersCount().catch(() => undefined),
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
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
