import { DelayedError, type Job } from 'bullmq';
import type { Logger } from '../src/runtime/logging.ts';

/**
 * When a job that was left alone may be taken again, by a worker of the version that knows it, in milliseconds: after
 * as long as it has been there. So during a deploy it hardly waits, and where nobody knows it any more it costs nothing.
 */
const AGAIN_MS = { least: 3_000, most: 60_000 } as const;

/**
 * What becomes of jobs that are none of ours.
 *
 * Those of another version of the app, which this one does not understand, stay as they are, and each kind is told in
 * the log once: during a deploy both work on the same queues, and after a step back jobs of the newer one are still
 * there. That there are jobs of another database is told once, too: two installations must not share a Redis.
 */
export class ForeignJobs {
  readonly #logger: Logger;
  readonly #told = new Set<string>();
  #hasToldUnknown = false;

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

  /**
   * Tells, once a process, of a job whose instance the database does not know. It is let go: the installation that it is
   * of brings it again, and where it was left behind, by a database that another one has replaced, nobody needs it.
   *
   * @param logger names the job
   */
  tellUnknown(logger: Logger): void {
    if (this.#hasToldUnknown) return;
    this.#hasToldUnknown = true;
    logger.error('Redis holds jobs of another database');
  }
}
