import { DelayedError, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openRedis } from '../../src/runtime/private-redis.ts';
import { createRedis, type RedisRole } from '../../src/runtime/redis.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const { logger } = testLogger();

/** What the app needs of Redis, on every Redis that it may start by itself. */
describe.each([
  { what: 'what the PATH offers', searchPath: process.env.PATH },
  { what: 'the JavaScript one', searchPath: '/usr/bin/nowhere' },
])('BullMQ and scripts on $what', async ({ searchPath }) => {
  vi.stubEnv('PATH', searchPath);
  const lease = await openRedis({ dir: tempDir(), logger }).finally(() => vi.unstubAllEnvs());
  const connections: Redis[] = [];
  const connection = (role: RedisRole): Redis => {
    const redis = createRedis(lease.url, role, logger);
    connections.push(redis);
    return redis;
  };
  afterAll(async () => {
    for (const redis of connections) redis.disconnect();
    await lease.release();
  });

  it('runs jobs, delays and moves them, schedules them, and adds one only once', async () => {
    const queue = new Queue('test', { connection: connection('general') });
    const started: string[] = [];
    const worker = new Worker<{ moved?: boolean }>(
      'test',
      async (job, token) => {
        started.push(job.name);
        if (job.name === 'moved' && job.data.moved !== true) {
          await job.updateData({ moved: true });
          await job.moveToDelayed(Date.now() + 100, token);
          throw new DelayedError();
        }
      },
      { connection: connection('worker') },
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
  });

  it('runs scripts with its own time, sorted sets and expiry, in one step', async () => {
    const redis = connection('general');
    const script = `
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
      if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return {0, now} end
      redis.call('ZADD', KEYS[1], now + 60000, ARGV[2])
      redis.call('PEXPIRE', KEYS[1], 60000)
      return {1, now}`;
    const take = (id: string) => redis.eval(script, 1, '{company}:in-flight', 2, id);
    const answers = await Promise.all(['a', 'b', 'c'].map(take));
    expect(answers).toEqual([
      [1, expect.any(Number)],
      [1, expect.any(Number)],
      [0, expect.any(Number)],
    ]);
    expect(await redis.pttl('{company}:in-flight')).toBeGreaterThan(50_000);
  });
});
