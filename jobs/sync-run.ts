import type { Job } from 'bullmq';
import { runSlice } from '../src/sync/run-slice.ts';
import type { SliceContext, SyncParts } from '../src/sync/slice-parts.ts';
import { giveWay } from './give-way.ts';
import type { SyncJobData } from './queues.ts';

/** One turn of a worker at one job. */
export interface JobContext extends SliceContext {
  /** Whether the worker has places to spare, so that no job waits for this one's. */
  hasRoom(): boolean;
}

/**
 * Processes a sync job: one slice of its run, or several, as long as nobody waits for the place. A wait is the job's,
 * not the worker's.
 */
export async function syncRun(
  parts: SyncParts,
  job: Job<SyncJobData>,
  token: string | undefined,
  context: JobContext,
): Promise<void> {
  const { instanceId, resource } = job.data;
  const logger = context.logger.child({ job: job.id, instanceId, resource });
  const slice = () => runSlice(parts, { instanceId, resource }, { ...context, logger });
  let outcome = await slice();
  while (outcome.kind === 'yield' && context.hasRoom() && !context.signal.aborted) outcome = await slice();
  if (outcome.kind !== 'ended') await giveWay(job, token, outcome);
}
