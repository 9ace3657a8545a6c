import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
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

it('is seen again when its directory is removed while it works, and tells of trouble with it once each time', async () => {
  const dir = join(tempDir(), 'workers');
  const { logger, lines } = testLogger();
  const processes = new Presence(dir, 'one');
  const end = takeOverFromDead({ processes, redis, onAbandoned: async () => {} }, queues.sync, logger, 20);
  // It has looked for the first time then.
  await setImmediate();
  expect(countWorkers(dir)).toBe(1);
  rmSync(dir, { recursive: true });
  await waitFor(() => countWorkers(dir) === 1);
  expect(lines).toEqual([]);
  for (let time = 1; time <= 2; time++) {
    rmSync(dir, { recursive: true });
    writeFileSync(dir, 'in the way');
    await waitFor(() => lines.filter(({ msg }) => msg?.includes('trying on')).length === time);
    rmSync(dir);
    await waitFor(() => countWorkers(dir) === 1);
  }
  await end();
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual(
    Array(2)
      .fill([
        'warn: workers that die will be noticed late: their files cannot be kept, trying on',
        'info: this worker is seen by the others now',
      ])
      .flat(),
  );
  expect(countWorkers(dir)).toBe(0);
});

it('tells once that the dead cannot be looked for, however long that lasts, and once that it is over', async () => {
  const dir = tempDir();
  const { logger, lines } = testLogger();
  let looks = 0;
  const processes = new (class extends Presence {
    override async forEachDead(takeOver: (id: string) => Promise<void>) {
      looks++;
      await super.forEachDead(takeOver);
    }
  })(dir, 'one');
  const end = takeOverFromDead({ processes, redis, onAbandoned: async () => {} }, queues.sync, logger, 20);
  for (let time = 1; time <= 2; time++) {
    // No file of a process, and none that can be looked at.
    mkdirSync(join(dir, 'odd.lock'));
    const before = looks;
    await waitFor(() => looks >= before + 3);
    rmSync(join(dir, 'odd.lock'), { recursive: true });
    await waitFor(() => lines.length === 2 * time);
  }
  await end();
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual(
    Array(2)
      .fill(['warn: dead workers could not be looked for', 'info: dead workers are looked for again'])
      .flat(),
  );
});
