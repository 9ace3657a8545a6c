import { DelayedError } from 'bullmq';
import type { Peer } from './peer.ts';
import { prepareQueueWalk } from './queue-walk.ts';

/** BullMQ's own limiter of the queue: so many jobs in so much time. A job that meets a 429 is delayed. */
export const bullmqLimiter: Peer = (order) =>
  prepareQueueWalk(order, {
    worker: { limiter: { max: order.limit, duration: order.windowMs } },
    async refused(job, token, retryMs) {
      await job.moveToDelayed(Date.now() + retryMs, token);
      throw new DelayedError();
    },
  });
