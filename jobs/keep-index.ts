import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../src/runtime/logging.ts';
import { watchLoopLoad } from '../src/sync/loop-load.ts';
import { CELL, INDEX_THREAD, type IndexThreadData, type IndexThreadMessage } from './index-thread-data.ts';

/** How soon after trouble it is tried again, in milliseconds. */
const AFTER_TROUBLE_MS = 10_000;

/** What the thread reads is soon forgotten: a little room for it takes no time, and saves some ten megabytes. */
const YOUNG_MEMORY_MB = 4;

/** What is kept up behind the pages. */
export interface IndexParts {
  /** Of the database, which is open in this process. */
  databaseUrl: string;
  logger: Logger;
  /** Instead of ten seconds. */
  afterTroubleMs?: number;
  /** From so many pages of 4 KB on, a log that somebody keeps is told; instead of 180,000. */
  longLogPages?: number;
}

/**
 * Keeps the search index up, from every worker, in a thread and with a connection of its own, so that nothing of it is
 * on the event loop of the sync: with a quarter of a core at most while pages come in, with a twentieth while there is
 * no time for anything else, and as fast as it can while none come. Finishes removals that were broken off, too. After
 * trouble, which is logged, a new thread takes over, and leaves what the one before got into trouble with to the last.
 *
 * @returns a function that ends it
 */
export function keepIndex({ databaseUrl, logger, ...options }: IndexParts): () => Promise<void> {
  const { afterTroubleMs = AFTER_TROUBLE_MS, longLogPages } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const cells = new Int32Array(
    new SharedArrayBuffer(Object.keys(CELL).length * Int32Array.BYTES_PER_ELEMENT),
  );
  signal.addEventListener('abort', () => {
    Atomics.store(cells, CELL.isEnding, 1);
    Atomics.notify(cells, CELL.isEnding);
  });
  const endTelling = watchLoopLoad((utilization) =>
    Atomics.store(cells, CELL.busyPercent, Math.round(utilization * 100)),
  );

  const run = async () => {
    while (!signal.aborted) {
      try {
        await runThread({ databaseUrl, longLogPages, cells }, logger);
      } catch (error) {
        logger.warn({ err: error }, 'the search index could not be kept up');
        await sleep(afterTroubleMs, undefined, { signal }).catch(() => undefined);
      }
    }
  };
  const ended = run();
  return () => {
    stopping.abort();
    endTelling();
    return ended;
  };
}

/** Runs a thread until it ends, and logs what it tells. Without what it was started with here: that is for the entry point of a process. */
async function runThread(workerData: IndexThreadData, logger: Logger): Promise<void> {
  const thread = new Worker(new URL('./index-thread.ts', import.meta.url), {
    name: INDEX_THREAD,
    workerData,
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEMORY_MB },
  });
  thread.on('message', (message: IndexThreadMessage) => {
    if ('unreadable' in message)
      logger.warn(message.unreadable, 'a record cannot be read: no search finds it');
    else logger.warn(message, 'the log of the database grows, as a process reads it for long: lsof names it');
  });
  await once(thread, 'exit');
}
