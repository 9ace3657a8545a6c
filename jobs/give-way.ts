import { DelayedError, type Job } from 'bullmq';
import type { SliceOutcome } from '../src/sync/slice-parts.ts';
import type { SyncJobData } from './queues.ts';

/**
 * Classes of jobs that wait for a place, by the pages that their run has: first come first served within a class, and
 * new jobs, which have none (0 to BullMQ), before all of them. So a small company that installs now does not stand
 * behind every slice of those that have had a window's worth of pages.
 */
const PRIORITY = { begun: 1, large: 2 } as const;
const LARGE_PAGES = 120;

/**
 * Puts a job back into the queue after its slice: behind those of its class that wait for a place, or until its time.
 * That is no failed attempt.
 *
 * @param token the worker's right to the job
 * @throws DelayedError always: so a processor tells its worker that the job is not done
 */
export async function giveWay(
  job: Job<SyncJobData>,
  token: string | undefined,
  outcome: Extract<SliceOutcome, { pages: number }>,
): Promise<never> {
  const priority = outcome.pages < LARGE_PAGES ? PRIORITY.begun : PRIORITY.large;
  if (job.priority !== priority) await job.changePriority({ priority });
  // To give way is a wait without an end: what goes back as waiting would stand before all others of its class.
  await job.moveToDelayed(outcome.kind === 'wait' ? outcome.until : Date.now(), token);
  throw new DelayedError();
}
