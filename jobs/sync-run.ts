import type { Job } from 'bullmq';
import { runSlice } from '../src/sync/run-slice.ts';
import type { SliceContext, SyncParts } from '../src/sync/slice-parts.ts';
import type { ForeignJobs } from './foreign-jobs.ts';
import { giveWay } from './give-way.ts';
import { isSyncJobData, type SyncJobData } from './queues.ts';

/** One turn of a worker at one job. */
export interface JobContext extends SliceContext {
  foreign: ForeignJobs;
}

/**
 * Processes a sync job: one slice of its run. A wait is the job's, not the worker's. What this version of the app does not understand, it does not touch: neither the job nor the run.
 */
export async function syncRun(
  parts: SyncParts,
  job: Job<SyncJobData>,
  token: string | undefined,
  context: JobContext,
): Promise<void> {
  if (!isUnderstood(parts, job)) return context.foreign.leaveAlone(job, token);
  const { instanceId, resource } = job.data;
  const logger = context.logger.child({ job: job.id, instanceId, resource });
  const outcome = await runSlice(parts, { instanceId, resource }, { ...context, logger });
  if (outcome.kind === 'unknown') context.foreign.tellUnknown(logger);
  else if (outcome.kind !== 'ended') await giveWay(job, token, outcome);
}

function isUnderstood({ resources }: SyncParts, { name, data }: Job<SyncJobData>): boolean {
  return isSyncJobData(data) && data.resource === name && resources.some((known) => known.name === name);
}
