import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { rotateTokens } from '../src/auth/tokens.ts';
import type { ChangeConsumer, Deliveries } from '../src/changes/delivery.ts';
import { type SenderParts, sendWrites } from '../src/changes/outbox-sender.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { Lagging } from '../src/store/changes.ts';
import type { RunStore } from '../src/store/runs.ts';
import type { Stores } from '../src/store/stores.ts';
import { isOutage, reportFailingLists } from '../src/sync/failure.ts';
import type { SliceContext, SyncParts } from '../src/sync/parts.ts';
import { runSlice } from '../src/sync/run.ts';
import { prepareLists, takeDue } from '../src/sync/schedule.ts';
import {
  type ListJobData,
  type OutboxJobData,
  priorityOf,
  QUEUE,
  type Queues,
  workerName,
} from './queues.ts';

/** Deliveries that one process works on at the same time. Most of them wait for the handler. */
const DELIVERIES_AT_ONCE = 50;

/** Outboxes that one process works on at the same time, and instances that a sweep gives a job. */
const OUTBOXES_AT_ONCE = 50;
const OUTBOXES_SWEPT = 500;

/** What finished writes held goes after this time, in milliseconds. */
const KEEP_WRITES_MS = 7 * 24 * 60 * 60_000;

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

/** Pauses between two looks for due lists, and between two for what else is due, in milliseconds. */
const SWEEP_MS = { least: 1_000, most: 30_000 } as const;

/** A closing worker waits this long for its jobs, in milliseconds. They stop at once unless Redis is silent. */
const CLOSE_MS = 6_000;

/** Pause of a job that an error of the app stopped, in milliseconds. */
const ERROR_PAUSE_MS = 2_000;

/** Between two heartbeats of a worker process, in milliseconds. */
const HEARTBEAT_MS = 5_000;

const HOUR_MS = 60 * 60_000;

export interface WorkerParts {
  redis: Redis;
  process: { processId: string; version: string };
  queues: Queues;
  sync: SyncParts;
  /** Finds due lists, by connections that pages do not take. */
  dueRuns: RunStore;
  stores: Pick<Stores, 'changes' | 'outbox' | 'browsers' | 'removals' | 'erasure' | 'actions'>;
  /** The copy keeps documents of deleted records this long, in milliseconds. */
  keepDeletedMs: number;
  consumers: readonly Pick<ChangeConsumer, 'name' | 'whileActive'>[];
  deliveries: Deliveries;
  sender: SenderParts;
  logger: Logger;
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
  const { onEvent } = parts.sync;
  const context = { logger, signal, onEvent, othersWait: () => slots.othersWait() };
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
function adjustConcurrency(sync: Worker, queues: Queues) {
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

/** Steps of a sweep, by what they do. */
type Steps = Record<string, () => Promise<unknown>>;

/** Sweeps the database for lists and deliveries without a job, and for maintenance that is due. */
function startSweep(parts: WorkerParts, signal: AbortSignal) {
  const { queues, sync, dueRuns, stores, consumers, logger } = parts;
  const restEveryMs = Math.max(SWEEP_MS.least, Math.min(SWEEP_MS.most, sync.intervalMs / 2));
  let isPrepared = false;
  const often: Steps = {
    'start runs and checks': async () => {
      if (!isPrepared) await prepareLists(sync);
      isPrepared = true;
      for await (const jobs of takeDue({ ...sync, runs: dueRuns })) {
        await queues.enqueueLists(jobs);
        if (signal.aborted) return;
      }
    },
    'send writes': async () => queues.enqueueOutboxes(await stores.outbox.due(OUTBOXES_SWEPT)),
  };
  const rest: Steps = {
    'retry dead letters': async () => {
      const { changes } = stores;
      for (const { list, consumer } of await changes.dueLetters(Date.now())) {
        await changes.retryDue(list, consumer, Date.now());
      }
    },
    deliver: async () => {
      for (const { name, whileActive } of consumers) {
        const all: Lagging[] = [];
        for await (const lists of stores.changes.lagging(name, { now: Date.now(), whileActive })) {
          await queues.enqueueDeliveries(lists);
          all.push(...lists);
          if (signal.aborted) return;
        }
        // A replay may have ended the wait of a delayed job.
        await queues.startDelayed(all);
      }
    },
    'report failing lists': () => reportFailingLists(sync),
    'remove expired sessions': () => stores.browsers.removeExpired(Date.now()),
    'remove copies': () => stores.removals.finish(undefined, signal),
    'erase deleted records': hourly(() => eraseDeleted(parts, signal)),
    'purge the files': hourly(() => stores.erasure.purge()),
    'forget old writes': hourly(() => stores.outbox.forget(Date.now() - KEEP_WRITES_MS, signal)),
    'remove old actions': hourly(() => stores.actions.removeOld(Date.now())),
  };
  const rotation = { 'rotate tokens': () => rotateTokens(sync.tokens, logger, signal) };
  // A long removal or a backlog of tokens must not keep runs from their start.
  const loops = [repeat(often, SWEEP_MS.least), repeat(rest, restEveryMs), repeat(rotation, restEveryMs)];
  return {
    ended: Promise.all(loops.map(({ ended }) => ended)),
    lateMs: () => Math.max(...loops.map(({ lateMs }) => lateMs())),
  };

  /** Takes steps again and again, until the signal. A step that fails stops no other. */
  function repeat(steps: Steps, everyMs: number) {
    const failing = new Set<string>();
    let sweptAt = performance.now();
    const sweep = async () => {
      for (const [step, run] of Object.entries(steps)) {
        if (signal.aborted) return;
        try {
          await run();
          failing.delete(step);
        } catch (err) {
          if (!failing.has(step)) logger.warn({ err, step }, 'a step of the sweep failed and is retried');
          failing.add(step);
        }
      }
      if (failing.size === 0) sweptAt = performance.now();
    };
    const run = async () => {
      while (!signal.aborted) {
        const begunAt = performance.now();
        await sweep();
        const pauseMs = Math.max(SWEEP_MS.least, everyMs - (performance.now() - begunAt));
        await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      }
    };
    const lateMs = () => {
      const ms = performance.now() - sweptAt;
      return ms > 2 * SWEEP_MS.most ? ms : 0;
    };
    return { ended: run(), lateMs };
  }
}

async function eraseDeleted(
  { stores, keepDeletedMs, logger }: WorkerParts,
  signal: AbortSignal,
): Promise<void> {
  const erased = await stores.erasure.eraseDeleted(Date.now() - keepDeletedMs, signal);
  if (erased > 0) logger.info({ erased }, 'the documents of old deleted records are erased');
}

/** Lets work pass once an hour. Work that failed may run again with the next call. */
function hourly(work: () => Promise<void>): () => Promise<void> {
  let doneAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - doneAt < HOUR_MS) return;
    await work();
    doneAt = performance.now();
  };
}
