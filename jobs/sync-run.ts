import { DelayedError, type Job, WaitingError } from 'bullmq';
import { runSlice } from '../src/sync/run-slice.ts';
import type { SliceContext, SyncParts } from '../src/sync/slice-parts.ts';
import type { SyncJobData } from './queues.ts';

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
  if (outcome.kind === 'wait') {
    await job.moveToDelayed(Date.now() + outcome.ms, token);
    throw new DelayedError();
  }
  if (outcome.kind === 'yield') {
    await job.moveToWait(token);
    throw new WaitingError();
  }
}
