import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Logger } from '../src/runtime/logging.ts';
import type { RunKey } from '../src/store/runs.ts';
import { isSyncJobData, type SyncJobData } from './queues.ts';

/** How often a worker looks for processes that died, and whether it is seen itself, in milliseconds. */
const LOOK_EVERY_MS = 2_000;

/** How long the lock of a job may be ours that has none any more, in milliseconds. */
const BORROWED_LOCK_MS = 2_000;

/** Tells the living processes from the dead, as far as this one can see. */
export interface LivingProcesses {
  /** Names this process. */
  readonly id: string;
  /** Counts as alive from now on; again, where it does not any more. */
  enter(): Promise<void>;
  leave(): Promise<void>;
  forEachDead(takeOver: (id: string) => Promise<void>): Promise<void>;
}

/** What a take-over works with. */
export interface TakeOverParts {
  processes: LivingProcesses;
  redis: Redis;
  /** Told which runs a dead process held, before they go on. */
  onAbandoned(processId: string, runs: readonly RunKey[]): Promise<void>;
}

/**
 * Lets what a dead process held go on at once, from every worker: when it starts, and every {@link LOOK_EVERY_MS}. Of
 * what it cannot know, as on another machine, BullMQ's own recovery takes care.
 *
 * @param everyMs how often it looks, in milliseconds
 * @returns a function that ends it
 */
export function takeOverFromDead(
  { processes, redis, onAbandoned }: TakeOverParts,
  queue: Queue<SyncJobData>,
  logger: Logger,
  everyMs = LOOK_EVERY_MS,
): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const look = () =>
    processes.forEachDead(async (processId) => {
      const held = await heldBy(queue, redis, processId);
      await onAbandoned(processId, held.map(({ job }) => job.data).filter(isSyncJobData));
      await Promise.all(held.map(({ job, token }) => giveBack(queue, redis, job, token)));
      // The queue's own recovery may have been quicker, above all when the next worker comes much later.
      if (held.length === 0) logger.info({ process: processId }, 'a worker died: it holds no job any more');
      else logger.info({ process: processId, jobs: held.length }, 'a worker died: its jobs go on');
    });
  const enter = tellingOnce(
    () => processes.enter(),
    (error) =>
      logger.warn(
        { err: error },
        'workers that die will be noticed late: their files cannot be kept, trying on',
      ),
    () => logger.info('this worker is seen by the others now'),
  );
  const lookForDead = tellingOnce(
    look,
    (error) => logger.warn({ err: error }, 'dead workers could not be looked for'),
    () => logger.info('dead workers are looked for again'),
  );
  const run = async () => {
    while (!signal.aborted) {
      if (await enter()) await lookForDead();
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
  const ended = run();
  return async () => {
    stopping.abort();
    await ended;
    await processes.leave();
  };
}

/**
 * What is done again and again, and may fail for long: that is told once, and once that it is over.
 *
 * @returns whether it went well
 */
function tellingOnce(
  action: () => Promise<void>,
  onTrouble: (error: unknown) => void,
  onEnd: () => void,
): () => Promise<boolean> {
  let hasTrouble = false;
  return async () => {
    try {
      await action();
      if (hasTrouble) onEnd();
      hasTrouble = false;
    } catch (error) {
      if (!hasTrouble) onTrouble(error);
      hasTrouble = true;
    }
    return !hasTrouble;
  };
}

interface HeldJob {
  job: Job<SyncJobData>;
  /** The right to the job; null when it ran out. */
  token: string | null;
}

async function heldBy(queue: Queue<SyncJobData>, redis: Redis, processId: string): Promise<HeldJob[]> {
  const ids = await queue.getRanges(['active'], 0, -1);
  if (ids.length === 0) return [];
  // Before the jobs: a dead process gets none any more, so what is still its own then was its own with this token, too.
  const tokens = await redis.mget(ids.map((id) => lockOf(queue, id)));
  const jobs = await Promise.all(ids.map((id) => queue.getJob(id)));
  return jobs.flatMap((job, at) =>
    job?.processedBy === processId ? [{ job, token: tokens[at] ?? null }] : [],
  );
}

/** To the front of the queue. With a token, nothing is forced against whoever has the job by now. */
async function giveBack(
  queue: Queue<SyncJobData>,
  redis: Redis,
  job: Job<SyncJobData>,
  token: string | null,
): Promise<void> {
  let right = token;
  if (right === null) {
    right = randomUUID();
    const lock = lockOf(queue, job.id ?? '');
    if ((await redis.set(lock, right, 'PX', BORROWED_LOCK_MS, 'NX')) === null) return;
  }
  // Another worker may have it meanwhile, by BullMQ's own recovery: then the token is worth nothing.
  await job.moveToWait(right).catch(() => undefined);
}

function lockOf(queue: Queue<SyncJobData>, jobId: string): string {
  return `${queue.toKey(jobId)}:lock`;
}
