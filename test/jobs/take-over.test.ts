import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'bullmq';
import { afterAll, expect, it } from 'vitest';
import { createQueues, QUEUE } from '../../jobs/queues.ts';
import { takeOverFromDead } from '../../jobs/take-over.ts';
import { countWorkers } from '../../src/runtime/living-workers.ts';
import { Presence } from '../../src/runtime/presence.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import type { RunKey } from '../../src/store/runs.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const { logger } = testLogger();
const { url } = await startTestRedis();
const redis = createRedis(url, 'general', logger);
const queues = createQueues(redis, logger);
afterAll(async () => {
  await queues.close();
  redis.disconnect();
});

/** A worker of a process that takes the next job by hand. */
function hand(processId: string) {
  const connection = createRedis(url, 'worker', logger);
  const worker = new Worker(QUEUE.sync, null, { connection, name: processId, autorun: false });
  afterAll(async () => {
    await worker.close(true);
    connection.disconnect();
  });
  return {
    async take(run: RunKey, token: string): Promise<string> {
      await queues.enqueue([run]);
      const job = await worker.getNextJob(token);
      expect(job?.data).toEqual(run);
      return job?.id ?? '';
    },
  };
}

const run = (instanceId: string): RunKey => ({ instanceId, resource: 'contacts' });

it('gives the jobs of a dead process back, also those whose lock ran out, and no others', async () => {
  const dir = tempDir();
  const victim = spawnEntry('test/support/hold-presence.ts', {}, { args: [dir, 'dead'] });
  await victim.waitForOutput(/entered/);
  const neighbour = spawnEntry('test/support/hold-presence.ts', {}, { args: [dir, 'alive'] });
  await neighbour.waitForOutput(/entered/);
  const [dead, alive] = [hand('dead'), hand('alive')];
  const locked = await dead.take(run('locked'), 'dead:1');
  const late = await dead.take(run('late'), 'dead:2');
  const others = await alive.take(run('others'), 'alive:1');
  await redis.del(`bull:sync:${late}:lock`);
  await victim.stop('SIGKILL');

  const told = Promise.withResolvers<{ processId: string; runs: readonly RunKey[]; states: unknown[] }>();
  const states = () => Promise.all([locked, late, others].map((id) => queues.sync.getJobState(id)));
  const end = takeOverFromDead(
    {
      processes: new Presence(dir, 'survivor'),
      redis,
      onAbandoned: async (processId, runs) => told.resolve({ processId, runs, states: await states() }),
    },
    queues.sync,
    logger,
  );
  const { processId, runs, states: before } = await told.promise;
  await end();

  expect(processId).toBe('dead');
  expect(runs.map(({ instanceId }) => instanceId).toSorted()).toEqual(['late', 'locked']);
  expect(before).toEqual(['active', 'active', 'active']);
  expect(await states()).toEqual(['waiting', 'waiting', 'active']);
  expect(await redis.get(`bull:sync:${others}:lock`)).toBe('alive:1');
});

it('is seen as soon as its file can be written, though that failed at its start', async () => {
  const dir = join(tempDir(), 'workers');
  writeFileSync(dir, 'in the way');
  const { logger, lines } = testLogger();
  const processes = new Presence(dir, 'one');
  const end = takeOverFromDead({ processes, redis, onAbandoned: async () => {} }, queues.sync, logger);
  await waitFor(() => lines.some(({ msg }) => msg?.includes('trying on')));
  rmSync(dir);
  await waitFor(() => countWorkers(dir) === 1);
  await end();
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    'warn: workers that die will be noticed late: their files cannot be kept, trying on',
    'info: this worker is seen by the others now',
  ]);
  expect(countWorkers(dir)).toBe(0);
});
