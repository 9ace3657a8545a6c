import { DelayedError, type Job } from 'bullmq';
import { runSlice } from '../src/sync/run-slice.ts';
import type { SliceContext, SyncParts } from '../src/sync/slice-parts.ts';
import type { SyncJobData } from './queues.ts';

/**
 * Classes of jobs that wait for a place, by the pages that their run has: first come first served within a class, and
 * new jobs, which have none (0 to BullMQ), before all of them. So a small company that installs now does not stand
 * behind every slice of those that have had a window's worth of pages.
 */
const PRIORITY = { begun: 1, large: 2 } as const;
const LARGE_PAGES = 120;

/**
 * Processes a sync job: one slice of its run. A wait is the job's, not the worker's: it goes back into the queue
 * until then, which is no failed attempt.
 */
export async function syncRun(
  parts: SyncParts,
  job: Job<SyncJobData>,
  token: string | undefined,
  context: SliceContext,
): Promise<void> {
  const { instanceId, resource } = job.data;
  const logger = context.logger.child({ job: job.id, instanceId, resource });
  const outcome = await runSlice(parts, { instanceId, resource }, { ...context, logger });
  if (outcome.kind === 'ended') return;
  const priority = outcome.pages < LARGE_PAGES ? PRIORITY.begun : PRIORITY.large;
  if (job.priority !== priority) await job.changePriority({ priority });
  // To give way is a wait without an end: what goes back as waiting would stand before all others of its class.
  await job.moveToDelayed(outcome.kind === 'wait' ? outcome.until : Date.now(), token);
  throw new DelayedError();
}
