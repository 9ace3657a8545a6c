import { setTimeout as sleep } from 'node:timers/promises';
import { rotateTokens } from '../src/auth/tokens.ts';
import type { ChangeConsumer } from '../src/changes/delivery.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { Lagging } from '../src/store/changes.ts';
import type { DueListStore } from '../src/store/due-lists.ts';
import type { Stores } from '../src/store/stores.ts';
import { reportFailingLists } from '../src/sync/failure.ts';
import type { SyncParts } from '../src/sync/parts.ts';
import { prepareLists, takeDue } from '../src/sync/schedule.ts';
import type { Queues } from './queues.ts';

/** Instances that a sweep gives a job for their outbox. */
const OUTBOXES_SWEPT = 500;

/** The content of finished writes is deleted after this time, in milliseconds. */
const KEEP_WRITES_MS = 7 * 24 * 60 * 60_000;

/** Pauses between two looks for due lists, and between two for what else is due, in milliseconds. */
const SWEEP_MS = { least: 1_000, most: 30_000 } as const;

const HOUR_MS = 60 * 60_000;

export interface SweepParts {
  queues: Queues;
  sync: SyncParts;
  /** Finds due lists, by connections that pages do not take. */
  dueLists: DueListStore;
  stores: Pick<Stores, 'changes' | 'outbox' | 'browsers' | 'removals' | 'erasure' | 'actions'>;
  /** The copy keeps documents of deleted records this long, in milliseconds. */
  keepDeletedMs: number;
  consumers: readonly Pick<ChangeConsumer, 'name' | 'whileActive'>[];
  logger: Logger;
}

/** Steps of a sweep, by what they do. */
type Steps = Record<string, () => Promise<unknown>>;

/** Sweeps the database for lists and deliveries without a job, and for maintenance that is due. */
export function startSweep(parts: SweepParts, signal: AbortSignal) {
  const { queues, sync, dueLists, stores, consumers, logger } = parts;
  const restEveryMs = Math.max(SWEEP_MS.least, Math.min(SWEEP_MS.most, sync.intervalMs / 2));
  let isPrepared = false;
  const often: Steps = {
    'start runs and checks': async () => {
      if (!isPrepared) await prepareLists(sync);
      isPrepared = true;
      for await (const jobs of takeDue({ ...sync, dueLists })) {
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
  { stores, keepDeletedMs, logger }: SweepParts,
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
