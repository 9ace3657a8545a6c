import { DelayedError, type Job } from 'bullmq';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { Peer } from './peer.ts';
import { prepareQueueWalk } from './queue-walk.ts';

async function delay(job: Job, token: string | undefined, ms: number): Promise<never> {
  await job.moveToDelayed(Date.now() + ms, token);
  throw new DelayedError();
}

/** rate-limiter-flexible in Redis: a window that starts with its first request. What it refuses is delayed by BullMQ. */
export const rateLimiterFlexible: Peer = (order) => {
  const limiter = new RateLimiterRedis({
    storeClient: new Redis(order.redisUrl, { maxRetriesPerRequest: null }),
    keyPrefix: order.prefix,
    points: order.limit,
    duration: order.windowMs / 1_000,
  });
  return prepareQueueWalk(order, {
    async before(job, token) {
      try {
        await limiter.consume('company');
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) await delay(job, token, refusal.msBeforeNext);
        throw refusal;
      }
    },
    refused: (job, token, retryMs) => delay(job, token, retryMs),
  });
};
