import type { Worker } from 'bullmq';

/** How long a worker leaves a Redis alone after an error, in milliseconds. */
const PAUSE_MS = 1_000;

/** How the error begins of a single job whose lock is lost: it comes every second until that job's work ends. */
const LOCK_LOST = 'could not renew lock';

/**
 * Has a worker pause for a moment after an error, as when Redis is full and refuses what it asks for, or is too old for
 * BullMQ. BullMQ itself pauses after errors of the connection alone (those have a code): anything else it would try again
 * at once, thousands of times a second, or without ever giving way to the rest of the process. Jobs that are under way go
 * on meanwhile, and no other begins.
 *
 * @returns a function that ends it, before the worker is closed
 */
export function pauseOnErrors(worker: Pick<Worker, 'on' | 'off' | 'pause' | 'resume'>): () => void {
  let timer: NodeJS.Timeout | undefined;
  const onError = (error: Error) => {
    if ('code' in error || error.message.startsWith(LOCK_LOST) || timer !== undefined) return;
    void worker.pause(true);
    timer = setTimeout(() => {
      timer = undefined;
      void worker.resume();
    }, PAUSE_MS);
  };
  worker.on('error', onError);
  return () => {
    worker.off('error', onError);
    clearTimeout(timer);
  };
}
