import type { Worker } from 'bullmq';

/** How long a worker leaves a Redis alone that refuses what it asks for, in milliseconds. */
const PAUSE_MS = 1_000;

/**
 * Has a worker pause for a moment whenever Redis refuses what it asks for, as when it is full. BullMQ itself pauses after
 * errors of the connection alone: a job whose moment has come it would ask for thousands of times a second. Jobs that are
 * under way go on meanwhile.
 *
 * @returns a function that ends it, before the worker is closed
 */
export function pauseOnRefusals(worker: Pick<Worker, 'on' | 'off' | 'pause' | 'resume'>): () => void {
  let timer: NodeJS.Timeout | undefined;
  const onError = (error: Error) => {
    if (error.name !== 'ReplyError' || timer !== undefined) return;
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
