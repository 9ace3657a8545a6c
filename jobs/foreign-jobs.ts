import { DelayedError, type Job } from 'bullmq';
import type { Logger } from '../src/runtime/logging.ts';

/**
 * When a job that was left alone may be taken again, by a worker of the version that knows it, in milliseconds: after
 * as long as it has been there. So during a deploy it hardly waits, and where nobody knows it any more it costs nothing.
 */
const AGAIN_MS = { least: 3_000, most: 60_000 } as const;

/**
 * What becomes of jobs that another version of the app has put into a queue, and that this one does not understand:
 * during a deploy both work on the same queues, and after a step back jobs of the newer one are still there. They
 * stay as they are; each kind is told in the log once.
 */
export class ForeignJobs {
  readonly #logger: Logger;
  readonly #told = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /**
   * Puts a job back, unharmed, for a worker that understands it. One that comes of a schedule is let go: the schedule
   * stays, and brings the next.
   *
   * @param token this worker's right to the job
   * @throws DelayedError unless the job is let go: so a processor tells its worker that the job is not done
   */
  async leaveAlone(job: Job, token: string | undefined): Promise<void> {
    const kind = `${job.queueName} ${job.name}`;
    if (!this.#told.has(kind)) {
      this.#told.add(kind);
      this.#logger.warn(
        { queue: job.queueName, job: job.id, name: job.name },
        'a job of another version of the app is left alone',
      );
    }
    if (job.repeatJobKey !== undefined) return;
    const age = Date.now() - job.timestamp;
    await job.moveToDelayed(Date.now() + Math.max(AGAIN_MS.least, Math.min(age, AGAIN_MS.most)), token);
    throw new DelayedError();
  }
}
