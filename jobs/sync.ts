import { DelayedError, type Job } from 'bullmq';
import { isOutage } from '../src/sync/failure.ts';
import type { SliceContext, SyncParts } from '../src/sync/parts.ts';
import { runSlice } from '../src/sync/run.ts';
import type { SyncJobData } from './queues.ts';

/** BullMQ's lowest priority. */
const LAST = 2_097_151;

/** How soon a job is tried again that the database or Redis kept from its work, in milliseconds. */
const TROUBLE_PAUSE_MS = 2_000;

/**
 * Works on a run for a slice. A wait is the job's, not the worker's. Runs with the fewest pages go first, so that every
 * company gets an even share, and a small one that installs now does not stand behind large ones.
 *
 * @param token the worker's right to the job
 * @throws DelayedError unless the run is over: so a processor tells its worker that the job is not done
 */
export async function syncJob(
  parts: SyncParts,
  job: Job<SyncJobData>,
  token: string | undefined,
  context: SliceContext,
): Promise<void> {
  const { instanceId, resource } = job.data;
  const logger = context.logger.child({ job: job.id, instanceId, resource });
  const outcome = await runSlice(parts, { instanceId, resource }, { ...context, logger }).catch((err) => {
    logger[isOutage(err) ? 'debug' : 'error']({ err }, 'the run could not be worked on: trying on');
    return { kind: 'wait', until: Date.now() + TROUBLE_PAUSE_MS, pages: job.priority } as const;
  });
  if (outcome.kind === 'ended') return;
  const priority = Math.min(outcome.pages + 1, LAST);
  if (job.priority !== priority) await job.changePriority({ priority });
  await job.moveToDelayed(outcome.kind === 'wait' ? outcome.until : Date.now(), token);
  throw new DelayedError();
}
