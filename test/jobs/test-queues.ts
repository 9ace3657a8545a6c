import { Worker } from 'bullmq';
import { afterAll } from 'vitest';
import { createQueues, QUEUE, type SyncJobData } from '../../jobs/queues.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

/** The queues on a Redis of their own, and a worker whose one place is the test's: it takes a job when it asks for one. */
export async function openTestQueues() {
  const { logger, lines } = testLogger();
  const { url } = await startTestRedis();
  const redis = createRedis(url, 'general', logger);
  const queues = createQueues(redis, logger);
  const workerRedis = createRedis(url, 'worker', logger);
  const worker = new Worker<SyncJobData>(QUEUE.sync, null, { connection: workerRedis, autorun: false });
  afterAll(async () => {
    await worker.close();
    await queues.close();
    redis.disconnect();
    workerRedis.disconnect();
  });
  return { url, redis, queues, worker, logger, lines };
}
