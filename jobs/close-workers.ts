import type { Worker } from 'bullmq';
import type { Logger } from '../src/runtime/logging.ts';
import type { WorkerConnections } from './worker-connections.ts';

/** How often the end of the workers is looked at, in milliseconds. */
const LOOK_MS = 250;

/**
 * After how many looks the connections to Redis are cut. BullMQ waits for them for ever: for a Redis that says nothing, and
 * for a connection that was between two tries when it was ended, though Redis is back by then. Jobs are given back in a
 * fraction of these times, and what cannot be given back goes on like a killed worker's.
 */
const LOOKS = {
  /** Without an answer of Redis. */
  silent: 8,
  /** In a row in which no job was worked on. */
  idle: 6,
  /** In all: what is worked on still waits for Redis, too, as own logic and refreshes have ended before. */
  most: 26,
} as const;

/** Closes the workers, whatever Redis does. @param isIdle whether none of them works on a job */
export async function closeWorkers(
  workers: readonly Pick<Worker, 'close'>[],
  connections: Pick<WorkerConnections, 'ask' | 'close'>,
  isIdle: () => boolean,
  logger: Logger,
): Promise<void> {
  const closed = Promise.all(workers.map((worker) => worker.close())).then(() => undefined);
  const givenUp = Promise.withResolvers<void>();
  const looks = { silent: 0, idle: 0, most: 0 };
  let isCut = false;
  const cut = () => {
    if (isCut) return;
    isCut = true;
    logger.warn('the connections to Redis are cut: jobs of this worker may not be given back');
    connections.close();
  };
  // Counted, not timed: while the process stands still, no answer is read either.
  const timer = setInterval(() => {
    looks.silent++;
    looks.most++;
    looks.idle = isIdle() ? looks.idle + 1 : 0;
    if (looks.silent > LOOKS.silent || looks.idle > LOOKS.idle || looks.most > LOOKS.most) cut();
    // What has been cut is over a moment later, but for what waits for Redis by other connections.
    if (looks.idle > LOOKS.idle + 1 || looks.most > LOOKS.most + 1) givenUp.resolve();
    connections.ask().then(
      () => {
        looks.silent = 0;
      },
      () => undefined,
    );
  }, LOOK_MS);
  await Promise.race([closed, givenUp.promise]).finally(() => clearInterval(timer));
}
