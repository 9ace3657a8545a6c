import { Worker } from 'bullmq';
import type { Peer } from './peer.ts';
import { prepareQueueWalk } from './queue-walk.ts';

/** More than there can be: the limiter must be there for the manual limit to work, and must not limit by itself. */
const JOBS_MAX = 1_000_000;

/** BullMQ's manual limit: a 429 stops the whole queue for as long as `retry-after` says. */
export const bullmqManual: Peer = (order) =>
  prepareQueueWalk(order, {
    worker: { limiter: { max: JOBS_MAX, duration: order.windowMs } },
    async refused(_job, _token, retryMs, queue) {
      await queue.rateLimit(retryMs);
      throw Worker.RateLimitError();
    },
  });
