import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from '../src/runtime/logging.ts';
import { type Lagging, SEARCH_CONSUMER } from '../src/store/changes.ts';
import type { ListJob, ListKey } from '../src/store/runs.ts';

export interface ListJobData extends ListKey {
  list: number;
}

export interface OutboxJobData {
  instanceId: string;
}

/** The queues by their names in Redis: runs, deliveries to the handler and to the search index, writes to the service. */
export const QUEUE = { sync: 'sync', deliver: 'deliver', index: 'index', outbox: 'outbox' } as const;

/** BullMQ's lowest priority. */
const LOWEST_PRIORITY = 2_097_151;

/** After this time a silent Redis counts as away, in milliseconds. */
const ANSWER_LIMIT_MS = 1_500;

// The database remembers how a job ended, and the job's id must become free.
const REMOVED = { removeOnComplete: true, removeOnFail: true } as const;

/** A worker without a sign of life for longer is forgotten, in milliseconds. */
const FORGOTTEN_MS = 5 * 60_000;

/** What a worker process says of itself. Moments are milliseconds since 1970. */
interface Heartbeat {
  version: string;
  startedAt: number;
  at: number;
  /** What its delivery process is at. */
  delivery: string;
}

export type Queues = ReturnType<typeof createQueues>;

/**
 * @param redis fails fast: a button must not hang while Redis is away
 * @param installation id of the database, which separates two installations on one Redis
 */
export function createQueues(redis: Redis, installation: string, logger: Logger) {
  const prefix = `${installation}:bull`;
  const beats = `${installation}:workers`;

  const options = { connection: redis, prefix, defaultJobOptions: REMOVED };
  // Jobs carry the names of lists: never a token or a URL.
  const sync = new Queue<ListJobData>(QUEUE.sync, options);
  const deliver = new Queue<Lagging>(QUEUE.deliver, options);
  const index = new Queue<Lagging>(QUEUE.index, options);
  const outbox = new Queue<OutboxJobData>(QUEUE.outbox, options);
  const queues = [sync, deliver, index, outbox];
  for (const queue of queues) {
    queue.on('error', (err) => logger.debug({ queue: queue.name, err }, 'the queue cannot use Redis'));
  }
  const listWorkers = async () => {
    const clients = await sync.getWorkers();
    // Where Redis refuses to list its clients, BullMQ answers one without a name.
    return clients.some(({ rawname }) => rawname === undefined)
      ? undefined
      : clients.map(({ rawname = '' }) => readWorkerName(rawname));
  };
  return {
    /** The beginning of BullMQ's keys. */
    prefix,
    /**
     * Gives each list a job, unless it has one. Checks go first, then the runs with the fewest pages. `now` is for what a
     * person started: its job goes before all others, also one that waits.
     */
    async enqueueLists(jobs: readonly ListJob[], { now = false } = {}): Promise<void> {
      if (jobs.length === 0) return;
      await sync.addBulk(
        jobs.map(({ instanceId, resource, list, until, pages }) => ({
          name: resource,
          data: { instanceId, resource, list },
          opts: {
            jobId: jobIdOf(list),
            delay: now ? 0 : Math.max(0, (until ?? 0) - Date.now()),
            ...(now ? { lifo: true } : pages !== undefined && { priority: priorityOf(pages) }),
          },
        })),
      );
      for (const { list } of now ? jobs : []) {
        const job = await sync.getJob(jobIdOf(list));
        if (await job?.isDelayed()) await promote(job);
        // It may have started in between.
        await job?.changePriority({ priority: 0, lifo: true }).catch(() => undefined);
      }
    },
    /** Gives each list a delivery that starts after this call, even while another one runs. */
    async enqueueDeliveries(lists: readonly Lagging[]): Promise<void> {
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
      }
    },
    /** Ends the wait of deliveries whose time has not come. */
    async startDelayed(lists: readonly Lagging[]): Promise<void> {
      const wanted = new Set(lists.map(dedupIdOf));
      for (const queue of wanted.size > 0 ? [deliver, index] : []) {
        const delayed = (await queue.getDelayed()).filter((job) => wanted.has(dedupIdOf(job.data)));
        for (const job of delayed) await promote(job);
      }
    },
    /** Gives the outbox of each instance a job, unless it has one. */
    async enqueueOutboxes(instanceIds: readonly string[]): Promise<void> {
      if (instanceIds.length === 0) return;
      const jobs = instanceIds.map((instanceId) => ({
        name: QUEUE.outbox,
        data: { instanceId },
        opts: { jobId: instanceId },
      }));
      await outbox.addBulk(jobs);
    },
    /** Counts the sync jobs by state. */
    syncCounts: () => countJobs(sync),
    /** Counts the jobs of all queues; undefined while Redis is away. */
    counts: () =>
      ifAnswered(redis, () =>
        Promise.all(queues.map(async (queue) => ({ name: queue.name, counts: await countJobs(queue) }))),
      ),
    /** Lists the worker processes; undefined while Redis is away or hides its clients. */
    workers: () => ifAnswered(redis, listWorkers),
    /** Notes that a worker process lives; without a heartbeat, that it has ended. */
    async beat(processId: string, heartbeat?: Heartbeat): Promise<void> {
      if (heartbeat === undefined) await redis.hdel(beats, processId);
      else {
        await redis.hset(beats, processId, JSON.stringify(heartbeat));
        await redis.pexpire(beats, 2 * FORGOTTEN_MS);
      }
    },
    /**
     * The worker processes with a heartbeat in the last minutes, and those that Redis knows without one, as an older
     * version has none; the oldest first. Undefined while Redis is away.
     */
    heartbeats: () =>
      ifAnswered(redis, async () => {
        const found = Object.entries(await redis.hgetall(beats)).map(([id, text]) => {
          return { id, ...(JSON.parse(text) as Heartbeat) };
        });
        const isKnown = ({ at }: Heartbeat) => Date.now() - at < FORGOTTEN_MS;
        const known = found.filter(isKnown);
        const gone = found.filter((one) => !isKnown(one)).map(({ id }) => id);
        if (gone.length > 0) await redis.hdel(beats, ...gone);
        const clients = (await listWorkers()) ?? [];
        const silent = clients
          .filter(({ id }) => !known.some((one) => one.id === id))
          .map(({ id, version, startedAt }) => {
            return {
              id,
              version,
              startedAt: Date.parse(startedAt ?? '') || Date.now(),
              at: null,
              delivery: '',
            };
          });
        return [...known, ...silent].toSorted((one, other) => one.startedAt - other.startedAt);
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
function jobIdOf(list: number): string {
  return `list-${list}`;
}

/** The priority of a full run's job: the fewest pages first. A job without a priority, as of a check, goes before all. */
export function priorityOf(pages: number): number {
  return Math.min(pages + 1, LOWEST_PRIORITY);
}

function dedupIdOf({ instanceId, resource, consumer }: Lagging): string {
  return `${instanceId}.${resource}.${consumer}`;
}

/** Starts a job that waits for its time. */
async function promote(job: Job | undefined): Promise<void> {
  // The job may have started in between.
  await job?.promote().catch(() => undefined);
}
