import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { createQueues } from '../../jobs/queues.ts';
import { UPKEEP } from '../../jobs/schedules.ts';
import type { InstanceStatus } from '../../src/sync/status-types.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { isRealRedis } from '../support/redis-server.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** For so long is counted what a Redis refuses, in milliseconds. */
const COUNTED_MS = 4_000;

/** The most that two workers ask for then, which look for jobs, and for those that others have lost. */
const MOST_REFUSALS = 60;

/** How often a Redis has refused a command by an error of this name. */
async function countRefusals(redis: Redis, name: string): Promise<number> {
  const stats = await redis.info('errorstats');
  return Number(new RegExp(`errorstat_${name}:count=(\\d+)`).exec(stats)?.[1] ?? 0);
}

test.skipIf(!isRealRedis).each([
  ['it is full', 'OOM', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'],
  [
    'it lacks a replica that it must have',
    'NOREPLICAS',
    'CONFIG SET min-replicas-to-write 1',
    'CONFIG SET min-replicas-to-write 0',
  ],
  ['it is a replica itself', 'READONLY', 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'],
])(
  'a Redis that refuses, as %s, is asked a few times a second, told once a second, also on the dashboard, and the sync goes on when it refuses no more',
  async (_why, error, refuse, goOn) => {
    const { app, control, log, redisUrl, session } = await startTestApp({ workers: false });
    const workers = app.startWorkers();
    const size = { contacts: 150, conversations: 100 };
    const company = await control.addCompany({ name: 'Full', plan: 'enterprise', ...size });
    const browser = session();
    const id = await install(browser, company);
    const { resources } = await waitForStatus(browser, id, isSynced);

    const redis = new Redis(redisUrl);
    const queues = createQueues(redis, log.logger);
    // Jobs whose moment comes meanwhile: one of them that a full Redis lets go makes a worker ask for the next at once.
    const delay = COUNTED_MS / 2;
    await queues.sync.add('of another version', { instanceId: id, resource: 'contacts' }, { delay });
    await queues.upkeep.add(UPKEEP.rotateTokens, {}, { delay });
    const run = (line: string) => redis.call(...(line.split(' ') as [string, ...string[]]));
    await run(refuse);
    await waitFor(async () => (await countRefusals(redis, error)) > 0);
    await sleep(COUNTED_MS);
    const [before, linesBefore] = [await countRefusals(redis, error), log.lines.length];
    await sleep(COUNTED_MS);
    const refusals = (await countRefusals(redis, error)) - before;
    expect(refusals).toBeLessThan(MOST_REFUSALS);
    const told = log.lines.slice(linesBefore).filter(({ msg }) => msg === 'the queue has trouble with Redis');
    expect(told.length).toBeLessThan(20);
    await waitFor(async () => (await countRefusals(redis, error)) > before, { what: 'a further try' });
    const messages = log.lines.map(({ msg }) => msg);
    expect(messages).toContain('the queue has trouble with Redis');
    // What may pass is nothing that it forbids.
    expect(messages).not.toContain('Redis forbids what the queue needs');
    const { notice } = await waitForStatus(browser, id, (status) => status.notice !== null);
    expect(notice).toContain('cannot work with its own queue (Redis)');

    await run(goOn);
    await app.control.syncNow(id);
    const isSyncedAgain = (status: InstanceStatus) =>
      isSynced(status) && status.resources.contacts?.finished_at !== resources.contacts?.finished_at;
    await waitForStatus(browser, id, isSyncedAgain);
    await waitForStatus(browser, id, (status) => status.notice === null);
    await queues.close();
    await redis.quit();
    await workers.close();
  },
);
