import { DelayedError, type Job } from 'bullmq';
import { type ChangeConsumer, type DeliveryContext, deliver } from '../src/changes/delivery.ts';
import type { ChangeStore } from '../src/store/changes.ts';
import { isOutage } from '../src/sync/failure.ts';
import type { DeliverJobData } from './queues.ts';

/** How soon a job is tried again that the database kept from its work, in milliseconds. */
const TROUBLE_PAUSE_MS = 2_000;

/**
 * Hands the changes of a list to a consumer.
 *
 * @param token the worker's right to the job
 * @throws DelayedError when there is more to do
 */
export async function deliverJob(
  changes: ChangeStore,
  consumers: readonly ChangeConsumer[],
  job: Job<DeliverJobData>,
  token: string | undefined,
  context: DeliveryContext,
): Promise<void> {
  const { instanceId, resource } = job.data;
  // A handler that a fork has taken out again leaves jobs behind.
  const consumer = consumers.find(({ name }) => name === job.data.consumer);
  if (consumer === undefined) return;
  const logger = context.logger.child({ job: job.id, instanceId, resource, consumer: consumer.name });
  const again = await deliver(changes, consumer, job.data, { ...context, logger }).catch((err) => {
    logger[isOutage(err) ? 'debug' : 'error']({ err }, 'changes could not be delivered: trying on');
    return Date.now() + TROUBLE_PAUSE_MS;
  });
  if (again === undefined) return;
  await job.moveToDelayed(again, token);
  throw new DelayedError();
}
