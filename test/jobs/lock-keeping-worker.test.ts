import { expect, test } from 'vitest';
import { LockKeepingWorker } from '../../jobs/lock-keeping-worker.ts';
import { QUEUE, type SyncJobData } from '../../jobs/queues.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { openTestQueues } from './test-queues.ts';

const { url, redis, queues, logger } = await openTestQueues();
const RUN = { instanceId: 'ins_1', resource: 'contacts' };
/** Short, so that a lock that nobody renews is soon lost. */
const LOCK = { lockDuration: 500, stalledInterval: 100, maxStalledCount: 100 };

test.each([
  ['Redis has lost it', () => redis.flushall()],
  ['its lock is over', () => redis.del('bull:sync:ins_1.contacts:lock')],
])(
  'a job that comes back to its worker while it is at it, as %s, keeps its lock when the first turn ends',
  async (_what, lose) => {
    const turns: (() => void)[] = [];
    const connection = createRedis(url, 'worker', logger);
    const worker = new LockKeepingWorker<SyncJobData>(
      QUEUE.sync,
      () => new Promise<void>((resolve) => void turns.push(resolve)),
      { connection, concurrency: 5, ...LOCK },
    );
    worker.on('error', () => undefined);
    let renewals = 0;
    worker.on('locksRenewed', () => renewals++);
    await queues.enqueue([RUN]);
    await waitFor(() => turns.length === 1);
    await lose();
    await waitFor(async () => {
      await queues.enqueue([RUN]);
      return turns.length > 1;
    });
    const ended = new Promise((resolve) => worker.once('error', resolve).once('failed', resolve));
    turns[0]?.();
    await ended;
    const before = renewals;
    // For several times as long as a lock lasts.
    await waitFor(() => renewals >= before + 8 || turns.length > 2);
    expect(turns.length).toBe(2);
    turns[1]?.();
    await waitFor(async () => (await queues.syncCounts()).active === 0);
    await worker.close();
    connection.disconnect();
  },
);
