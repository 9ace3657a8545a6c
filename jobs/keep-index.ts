import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../src/runtime/logging.ts';
import type { RemovalStore } from '../src/store/removals.ts';
import type { SearchIndex } from '../src/store/search-index.ts';

/** How long a portion keeps the event loop from everything else, in milliseconds. */
const PORTION_MS = 8;

/** How soon an empty queue is looked at again, and how soon after trouble, in milliseconds. */
const LOOK_AGAIN_MS = 1_000;
const AFTER_TROUBLE_MS = 10_000;

/** From this share of its time on, the process counts as busy with better things. */
const BUSY = 0.5;

/** While the process is busy, this many times as long as a portion took pass before the next. */
const PAUSES_WHEN_BUSY = 9;

/** What is kept up behind the pages. */
export interface IndexParts {
  index: SearchIndex;
  removals: RemovalStore;
  logger: Logger;
}

/**
 * Keeps the search index up, from every worker, in short portions that give way: at most a tenth of the time while the
 * process is busy, most of it while it is not. Finishes removals that were broken off, too.
 *
 * @returns a function that ends it
 */
export function keepIndex({ index, removals, logger }: IndexParts): () => Promise<void> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);

  const step = async () => {
    const startedAt = performance.now();
    const isWorking = (await index.indexPortion(PORTION_MS)) !== undefined || (await removals.resume());
    if (!isWorking) return pause(LOOK_AGAIN_MS);
    const tookMs = performance.now() - startedAt;
    const before = performance.eventLoopUtilization();
    await pause(tookMs / 2);
    const { utilization } = performance.eventLoopUtilization(before);
    if (utilization > BUSY) await pause(PAUSES_WHEN_BUSY * tookMs);
  };
  const run = async () => {
    while (!signal.aborted) {
      try {
        await step();
      } catch (error) {
        logger.warn({ err: error }, 'the search index could not be kept up');
        await pause(AFTER_TROUBLE_MS);
      }
    }
  };
  const ended = run();
  return () => {
    stopping.abort();
    return ended;
  };
}
