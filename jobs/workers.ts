import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Deliveries } from '../src/changes/delivery.ts';
import { type SenderParts, sendWrites } from '../src/changes/outbox-sender.ts';
import type { Lagging } from '../src/store/changes.ts';
import { isOutage } from '../src/sync/failure.ts';
import type { SliceContext, SyncParts } from '../src/sync/parts.ts';
import { runSlice } from '../src/sync/run.ts';
import {
  type ListJobData,
  type OutboxJobData,
  priorityOf,
  QUEUE,
  type Queues,
  workerName,
} from './queues.ts';
import { type SweepParts, startSweep } from './sweep.ts';

/** Deliveries that one process works on at the same time. Most of them wait for the handler. */
const DELIVERIES_AT_ONCE = 50;

/** Outboxes that one process works on at the same time. */
const OUTBOXES_AT_ONCE = 50;

/**
 * Runs that one process works on at the same time. Most wait for the network. Where the CPU is busy, more runs make
 * every page wait, and small companies with it.
 */
const RUNS_AT_ONCE = { least: 8, first: 64, most: 256, step: 16 } as const;
const CPU = { busyFrom: 0.97, idleUntil: 0.92, checkEveryMs: 500 } as const;

/** Another worker gets the job of a killed one within a lock and two checks. The fence stops the first worker. */
const RECOVERY = { lockDuration: 4_000, stalledInterval: 2_000, maxStalledCount: 1_000 } as const;

/** A busy event loop must not lose the job of a run, which has to begin its page again. */
const RUN_RECOVERY = { ...RECOVERY, lockDuration: 15_000, stalledInterval: 5_000 } as const;

/** A closing worker waits this long for its jobs, in milliseconds. They stop at once unless Redis is silent. */
const CLOSE_MS = 6_000;

/** Pause of a job that an error of the app stopped, in milliseconds. */
const ERROR_PAUSE_MS = 2_000;

/** Between two heartbeats of a worker process, in milliseconds. */
const HEARTBEAT_MS = 5_000;

interface WorkerParts extends SweepParts {
  redis: Redis;
  process: { processId: string; version: string };
  deliveries: Deliveries;
  sender: SenderParts;
  /** Gets how long the job of a new run waited for a slot, in milliseconds. */
  onFirstSlot?: (slot: { waitMs: number }) => void;
}

export type Workers = ReturnType<typeof startWorkers>;

/** Starts the workers of this process. */
export function startWorkers(parts: WorkerParts) {
  const { redis, queues, deliveries: delivering, logger } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;
  const name = workerName(parts.process);
  const options = { connection: redis, prefix: queues.prefix, name, ...RECOVERY };
  const context = { logger, signal, othersWait: () => slots.othersWait() };
  const sync = new Worker<ListJobData>(QUEUE.sync, (job, token) => syncJob(parts.sync, job, token, context), {
    ...options,
    ...RUN_RECOVERY,
    concurrency: RUNS_AT_ONCE.first,
  });
  const slots = adjustConcurrency(sync, queues);
  const deliverOne = async (job: Job<Lagging>, token: string | undefined) => {
    const again = await delivering.deliver(job.data);
    if (again !== undefined) await requeue(job, token, again);
  };
  const deliveries = new Worker<Lagging>(QUEUE.deliver, deliverOne, {
    ...options,
    concurrency: DELIVERIES_AT_ONCE,
  });
  const index = new Worker<Lagging>(QUEUE.index, deliverOne, { ...options, concurrency: 1 });
  const sendOne = async (job: Job<OutboxJobData>, token: string | undefined) => {
    const { instanceId } = job.data;
    const again = await sendWrites(parts.sender, instanceId, { logger, signal }).catch((err) => {
      logger[isOutage(err) ? 'debug' : 'error']({ err, instanceId }, 'the outbox stopped and is retried');
      return Date.now() + ERROR_PAUSE_MS;
    });
    if (again !== undefined) await requeue(job, token, again);
  };
  const outboxes = new Worker<OutboxJobData>(QUEUE.outbox, sendOne, {
    ...options,
    concurrency: OUTBOXES_AT_ONCE,
  });
  const workers: Worker[] = [sync, deliveries, index, outboxes];
  for (const worker of workers) {
    worker.on('stalled', (job) => logger.warn({ job }, 'a worker lost a job; another worker continues it'));
    worker.on('failed', (job, err) => logger.error({ job: job?.id, err }, 'a job failed'));
    worker.on('error', (err) => logger.debug({ queue: worker.name, err }, 'the worker cannot use Redis'));
  }
  sync.on('active', (job) => {
    if (job.attemptsStarted !== 1) return;
    const from = job.timestamp + (job.opts.delay ?? 0);
    parts.onFirstSlot?.({ waitMs: Math.max(0, (job.processedOn ?? Date.now()) - from) });
  });
  const { processId, version } = parts.process;
  const startedAt = Date.now();
  const beat = () => {
    const heartbeat = { version, startedAt, at: Date.now(), delivery: delivering.state };
    queues.beat(processId, heartbeat).catch(() => undefined);
  };
  beat();
  const beating = setInterval(beat, HEARTBEAT_MS).unref();
  const sweeping = startSweep(parts, signal);
  return {
    /** For how long the sweep has failed, in milliseconds; 0 while it works. */
    sweepLateMs: sweeping.lateMs,
    /** Stops the workers and breaks off their requests. Every run continues in another worker. */
    async close() {
      slots.close();
      clearInterval(beating);
      stopping.abort();
      const closings = workers.map((worker) => worker.close());
      const ended = queues.beat(processId).catch(() => undefined);
      const closed = Promise.all([sweeping.ended, delivering.close(), ended, ...closings]);
      await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
      redis.disconnect();
    },
  };
}

/**
 * Works on a run for a time slice. A waiting run gives its slot to others. Runs with the fewest pages go first: every
 * company gets an equal share, and a small one that installs now does not queue behind large ones.
 *
 * @param token proves to BullMQ that this worker has the job
 * @throws DelayedError unless the run is over: BullMQ then keeps the job
 */
export async function syncJob(
  parts: SyncParts,
  job: Job<ListJobData>,
  token: string | undefined,
  context: SliceContext,
): Promise<void> {
  const { instanceId, resource, list } = job.data;
  // An older version left the job behind: the list has another one.
  if (list === undefined) return;
  const logger = context.logger.child({ job: job.id, instanceId, resource });
  const outcome = await runSlice(parts, job.data, { ...context, logger }).catch((err) => {
    logger[isOutage(err) ? 'debug' : 'error']({ err }, 'the run stopped and is retried');
    return { kind: 'wait', until: Date.now() + ERROR_PAUSE_MS, pages: job.priority } as const;
  });
  if (outcome.kind === 'ended') return;
  const priority = priorityOf(outcome.pages);
  if (job.priority !== priority) await job.changePriority({ priority });
  await requeue(job, token, outcome.kind === 'wait' ? outcome.until : Date.now());
}

async function requeue(job: Job, token: string | undefined, at: number): Promise<never> {
  await job.moveToDelayed(at, token);
  throw new DelayedError();
}

/** Limits the runs at once to what the CPU can do, and knows whether other jobs wait for a slot. */
export function adjustConcurrency(sync: { concurrency: number }, queues: Pick<Queues, 'syncCounts'>) {
  const { least, most, step } = RUNS_AT_ONCE;
  let last = performance.eventLoopUtilization();
  let waiting = 0;
  const timer = setInterval(async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    if (utilization > CPU.busyFrom) sync.concurrency = Math.max(least, Math.floor(sync.concurrency * 0.7));
    else if (utilization < CPU.idleUntil) sync.concurrency = Math.min(most, sync.concurrency + step);
    waiting = await queues.syncCounts().then(
      (counts) => counts.waiting,
      () => 0,
    );
  }, CPU.checkEveryMs).unref();
  return { othersWait: () => waiting > 0, close: () => clearInterval(timer) };
}
