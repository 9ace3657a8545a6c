import { DelayedError, Queue, Worker } from 'bullmq';
import { afterAll, expect, it, vi } from 'vitest';
import { openRedis } from '../../src/runtime/private-redis.ts';
import { createRedis, type RedisRole } from '../../src/runtime/redis.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

// All other tests run on the machine's Redis, if there is one.
vi.stubEnv('PATH', '/usr/bin/nowhere');
const { logger } = testLogger();
const lease = await openRedis({ dir: tempDir(), logger }).finally(() => vi.unstubAllEnvs());
const connect = (role: RedisRole) => createRedis(lease.url, role, logger);
afterAll(() => lease.release());

it('BullMQ delays, moves, schedules and deduplicates jobs on the JavaScript Redis', async () => {
  const [general, blocking] = [connect('general'), connect('worker')];
  const queue = new Queue('test', { connection: general });
  const started: string[] = [];
  const worker = new Worker<{ moved?: boolean }>(
    'test',
    async (job, token) => {
      started.push(job.name);
      if (job.name !== 'moved' || job.data.moved === true) return;
      await job.updateData({ moved: true });
      await job.moveToDelayed(Date.now() + 100, token);
      throw new DelayedError();
    },
    { connection: blocking },
  );
  const failed: unknown[] = [];
  worker.on('failed', (_job, error) => failed.push(error));

  await queue.add('delayed', {}, { delay: 150 });
  await queue.add('moved', {});
  await queue.upsertJobScheduler('every', { every: 100 }, { name: 'scheduled' });
  const count = (name: string): number => started.filter((each) => each === name).length;
  await waitFor(() => count('delayed') === 1 && count('moved') === 2 && count('scheduled') >= 3);
  expect(failed).toEqual([]);
  await queue.removeJobScheduler('every');
  await worker.close();

  const first = await queue.add('once', {}, { deduplication: { id: 'x' } });
  const second = await queue.add('once', {}, { deduplication: { id: 'x' } });
  expect(second.id).toBe(first.id);
  await queue.close();
  for (const redis of [general, blocking]) redis.disconnect();
});
