import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { forBullmq } from '../../jobs/bullmq-redis.ts';
import { createQueues, QUEUE } from '../../jobs/queues.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { isRealRedis, redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const RUN = { instanceId: 'ins_1', resource: 'contacts' };

test('a Redis that stands still as a process starts costs it nothing for good: its queues work as soon as it answers', async () => {
  const server = await startRedisServer();
  const proxy = await startTcpProxy(server.port);
  const { logger } = testLogger();
  const redis = createRedis(redisUrlAt(proxy.port), 'general', logger);
  await once(redis, 'ready');
  const queues = createQueues(redis, logger);
  // The answer to what BullMQ asks first does not come in time, nor that to what is asked behind it.
  proxy.silence();
  await expect(redis.ping()).rejects.toThrow('Command timed out');
  await proxy.pass();
  await waitFor(async () => (await redis.ping().catch(() => '')) === 'PONG');
  await queues.enqueue([RUN]);
  expect(await queues.syncCounts()).toMatchObject({ waiting: 1 });
  await queues.close();
  redis.disconnect();
});

test.skipIf(!isRealRedis)(
  'where INFO is forbidden, as @dangerous commands are, BullMQ knows the version all the same, and jobs are worked on',
  async () => {
    const server = await startRedisServer();
    const admin = new Redis(redisUrlAt(server.port));
    const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
    const [, rules = ''] = /`ACL SETUSER … (\+.+?)`/.exec(page) ?? [];
    await admin.acl('SETUSER', 'app', 'on', '>of-the-app', '~*', '&*', ...rules.split(' '));
    const { logger } = testLogger();
    const url = `redis://app:of-the-app@127.0.0.1:${server.port}`;
    const redis = createRedis(url, 'general', logger);
    await expect(redis.info()).rejects.toThrow(/^NOPERM/);
    // Which the page has somebody ask.
    expect(await redis.role()).toContain('master');
    const [version] = /redis_version:\S+/.exec(await admin.info()) ?? [];
    const { signal } = new AbortController();
    expect(await forBullmq(redis, signal).info()).toBe(version);

    const queues = createQueues(redis, logger);
    const workerRedis = createRedis(url, 'worker', logger);
    const done: unknown[] = [];
    const worker = new Worker(QUEUE.sync, async (job) => void done.push(job.data), {
      connection: forBullmq(workerRedis, signal, {
        duplicate: (options) => forBullmq(createRedis(url, 'worker', logger, options), signal),
      }),
    });
    await queues.enqueue([RUN]);
    await waitFor(() => done.length > 0);
    expect(done).toEqual([RUN]);
    await worker.close();
    await queues.close();
    for (const each of [admin, redis, workerRedis]) each.disconnect();
  },
);

test('what BullMQ asks first is not asked for any more when its queues are closed', async () => {
  const server = await startRedisServer();
  const redis = createRedis(redisUrlAt(server.port), 'general', testLogger().logger);
  await once(redis, 'ready');
  await server.kill();
  const closing = new AbortController();
  const asked = forBullmq(redis, closing.signal).info();
  closing.abort();
  await expect(asked).rejects.toThrow();
  redis.disconnect();
});
