import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { rotateTokens } from '../src/auth/rotation.ts';
import type { ChangeConsumer } from '../src/changes/delivery.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { Stores } from '../src/store/stores.ts';
import { tellFailing } from '../src/sync/failure.ts';
import type { SyncParts } from '../src/sync/parts.ts';
import { startDueRuns } from '../src/sync/schedule.ts';
import { deliverJob } from './deliver.ts';
import { type DeliverJobData, QUEUE, type Queues, type SyncJobData, workerName } from './queues.ts';
import { syncJob } from './sync.ts';

/** Deliveries that one process works on at the same time: they mostly wait for the handler. */
const DELIVERIES_AT_ONCE = 50;

/**
 * Runs likewise: as many as the core keeps up with. Most wait for the network; where the core is busy, more of them would
 * make every page wait, and small companies with it.
 */
const RUNS_AT_ONCE = { least: 8, first: 64, most: 256, step: 16 } as const;
const BUSY = { from: 0.97, until: 0.92, lookEveryMs: 500 } as const;

/** Another worker has the job of a killed one within lock and check together; the fence keeps the dead one out. */
const RECOVERY = { lockDuration: 4_000, stalledInterval: 2_000, maxStalledCount: 1_000 } as const;

/** How often a worker looks in the database for what has no job, in milliseconds. */
const SWEEP_MS = { least: 1_000, most: 30_000 } as const;

/** How long the end of jobs is waited for, in milliseconds: they break off at once, unless Redis is silent. */
const CLOSE_MS = 6_000;

const HOUR_MS = 60 * 60_000;

/** What the workers of a process work with. */
export interface WorkerParts {
  redis: Redis;
  process: { processId: string; version: string };
  queues: Queues;
  sync: SyncParts;
  stores: Pick<Stores, 'changes' | 'browsers' | 'removals' | 'erasure' | 'actions'>;
  /** How long documents of deleted records are kept, in milliseconds. */
  keepDeletedMs: number;
  consumers: readonly ChangeConsumer[];
  logger: Logger;
  /** Told how long the job of a new run waited for a slot, in milliseconds. */
  onFirstSlot?: (slot: { waitMs: number }) => void;
}

/** The workers of one process, running. */
export interface Workers {
  /** For how long the database could not be swept, in milliseconds; 0 while it can be. */
  sweepLateMs(): number;
  /** Ends them: requests under way are broken off, and every run stands where another worker takes it up. */
  close(): Promise<void>;
}

/** Starts the workers of this process. */
export function startWorkers(parts: WorkerParts): Workers {
  const { redis, queues, stores, consumers, logger } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;
  const name = workerName(parts.process);
  const options = { connection: redis, prefix: queues.prefix, name, ...RECOVERY };
  const { onEvent } = parts.sync;
  const context = { logger, signal, onEvent, othersWait: () => slots.othersWait() };
  const sync = new Worker<SyncJobData>(QUEUE.sync, (job, token) => syncJob(parts.sync, job, token, context), {
    ...options,
    concurrency: RUNS_AT_ONCE.first,
  });
  const slots = adjustConcurrency(sync, queues);
  const deliverOne = (job: Job<DeliverJobData>, token: string | undefined) =>
    deliverJob(stores.changes, consumers, job, token, context);
  const deliver = new Worker<DeliverJobData>(QUEUE.deliver, deliverOne, {
    ...options,
    concurrency: DELIVERIES_AT_ONCE,
  });
  const index = new Worker<DeliverJobData>(QUEUE.index, deliverOne, { ...options, concurrency: 1 });
  const workers: Worker[] = [sync, deliver, index];
  for (const worker of workers) {
    worker.on('stalled', (job) =>
      logger.warn({ job }, 'a worker has lost a job: another one goes on with it'),
    );
    worker.on('failed', (job, err) => logger.error({ job: job?.id, err }, 'a job failed'));
    worker.on('error', (err) =>
      logger.debug({ queue: worker.name, err }, 'the worker has trouble with Redis'),
    );
  }
  sync.on('active', (job) => {
    if (job.attemptsStarted !== 1) return;
    const from = job.timestamp + (job.opts.delay ?? 0);
    parts.onFirstSlot?.({ waitMs: Math.max(0, (job.processedOn ?? Date.now()) - from) });
  });
  const sweeping = startSweep(parts, signal);
  return {
    sweepLateMs: sweeping.lateMs,
    async close() {
      slots.end();
      stopping.abort();
      const closed = Promise.all([sweeping.ended(), ...workers.map((worker) => worker.close())]);
      await Promise.race([closed, sleep(CLOSE_MS, undefined, { ref: false })]);
      redis.disconnect();
    },
  };
}

/** Keeps the number of runs at once to what the core keeps up with, and knows whether others wait for a slot. */
function adjustConcurrency(sync: Worker, queues: Queues) {
  const { least, most, step } = RUNS_AT_ONCE;
  let last = performance.eventLoopUtilization();
  let waiting = 0;
  const timer = setInterval(async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    if (utilization > BUSY.from) sync.concurrency = Math.max(least, Math.floor(sync.concurrency * 0.7));
    else if (utilization < BUSY.until) sync.concurrency = Math.min(most, sync.concurrency + step);
    waiting = await queues.syncCounts().then(
      (counts) => counts.waiting,
      () => 0,
    );
  }, BUSY.lookEveryMs).unref();
  return { othersWait: () => waiting > 0, end: () => clearInterval(timer) };
}

/** Looks in the database, again and again, for all that must have a job or comes round by itself. */
function startSweep(parts: WorkerParts, signal: AbortSignal) {
  const { queues, sync, stores, consumers, logger } = parts;
  const everyMs = Math.max(SWEEP_MS.least, Math.min(SWEEP_MS.most, sync.intervalMs / 2));
  const steps: Record<string, () => Promise<unknown>> = {
    'start runs': async () => queues.enqueueRuns(await startDueRuns(sync)),
    deliver: async () => {
      for (const { name, whileActive } of consumers) {
        const lagging = await stores.changes.lagging(name, { now: Date.now(), whileActive });
        // One that was to wait may go on, as by a replay.
        await queues.enqueueDeliveries(lagging, { now: true });
      }
    },
    'tell of failing lists': () => tellFailing(sync),
    'rotate tokens': () => rotateTokens(sync.tokens, logger, signal),
    'remove expired sessions': () => stores.browsers.removeExpired(Date.now()),
    'remove copies': () => stores.removals.finish(undefined, signal),
    'erase deleted records': hourly(() => eraseDeleted(parts, signal)),
    'remove old actions': hourly(() => stores.actions.removeOld(Date.now())),
  };
  const failing = new Set<string>();
  let sweptAt = performance.now();
  const sweep = async () => {
    for (const [step, run] of Object.entries(steps)) {
      if (signal.aborted) return;
      try {
        await run();
        failing.delete(step);
      } catch (err) {
        if (!failing.has(step)) logger.warn({ err, step }, 'the sweep failed, trying on');
        failing.add(step);
      }
    }
    if (failing.size === 0) sweptAt = performance.now();
  };
  const run = async () => {
    while (!signal.aborted) {
      await sweep();
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const ended = run();
  return {
    ended: () => ended,
    lateMs: () => {
      const ms = performance.now() - sweptAt;
      return ms > 2 * SWEEP_MS.most ? ms : 0;
    },
  };
}

async function eraseDeleted(
  { stores, keepDeletedMs, logger }: WorkerParts,
  signal: AbortSignal,
): Promise<void> {
  const erased = await stores.erasure.eraseDeleted(Date.now() - keepDeletedMs, signal);
  if (erased === 0) return;
  logger.info({ erased }, 'documents of deleted records are erased');
  await stores.erasure.purge();
}

/** Does something when it is called first, and then once an hour; what has failed is tried again with the next call. */
function hourly(work: () => Promise<void>): () => Promise<void> {
  let doneAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - doneAt < HOUR_MS) return;
    await work();
    doneAt = performance.now();
  };
}
