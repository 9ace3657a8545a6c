import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { OtherDatabaseError, SharedRedis } from '../../src/runtime/shared-redis.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const redis = new Redis((await startTestRedis()).url);
const entered: SharedRedis[] = [];
afterAll(async () => {
  for (const one of entered) await one.leave();
  redis.disconnect();
});

const LINE = 'another process works on the same Redis with another database';

function newFile(): string {
  const path = join(tempDir(), 'app.db');
  writeFileSync(path, '');
  return path;
}

function processOn(path: string, { connection = redis, patienceMs = 10_000 } = {}) {
  const { logger, lines } = testLogger();
  const shared = new SharedRedis(connection, { path, id: `process-${entered.length}`, logger, patienceMs });
  entered.push(shared);
  return { shared, told: () => lines.filter(({ msg }) => msg === LINE) };
}

const seen = () => redis.zcard('processes');

test('processes with one database file, by whatever path, enter one after another; one with another file is refused while one of them lives', async () => {
  const path = newFile();
  const link = join(tempDir(), 'link.db');
  symlinkSync(path, link);
  const [first, second, other] = [
    processOn(path),
    processOn(link),
    processOn(newFile(), { patienceMs: 1_500 }),
  ];
  await first.shared.enter();
  await waitFor(async () => (await seen()) === 1);
  await second.shared.enter();
  await waitFor(async () => (await seen()) === 2);

  const refused = other.shared.enter();
  await expect(refused).rejects.toThrow(OtherDatabaseError);
  await expect(refused).rejects.toThrow(path);
  await expect(refused).rejects.toThrow(/set REDIS_URL to another Redis/);
  expect(await seen()).toBe(2);
  expect([...first.told(), ...second.told()]).toEqual([]);

  await first.shared.leave();
  await second.shared.leave();
  await other.shared.enter();
  await waitFor(async () => (await seen()) === 1);
  await other.shared.leave();
});

test('one that was killed, or is about to end, is waited for, and forgotten', async () => {
  const dead = { id: 'dead', host: 'h', pid: 1, path: '/gone/app.db', file: 'm:1:1' };
  const [seconds] = await redis.time();
  await redis.zadd('processes', (Number(seconds) - 1) * 1_000, JSON.stringify(dead));
  const one = processOn(newFile());
  await one.shared.enter();
  await waitFor(async () => (await redis.zscore('processes', JSON.stringify(dead))) === null);
  expect(await seen()).toBe(1);
  await one.shared.leave();
});

test('who comes with another file all the same, as Redis was away at its start, is told once', async () => {
  const [one, other] = [processOn(newFile()), processOn(newFile())];
  await Promise.all([one.shared.enter(), other.shared.enter()]);
  await waitFor(() => one.told().length > 0 && other.told().length > 0);
  await redis.flushall();
  await waitFor(async () => (await seen()) === 2);
  expect([one.told(), other.told()].map((told) => told.map(({ level }) => level))).toEqual([
    ['error'],
    ['error'],
  ]);
  await Promise.all([one.shared.leave(), other.shared.leave()]);
});

test('a file of the same number on another device, as in a snapshot of a volume, is another one', async () => {
  const path = newFile();
  const one = processOn(path);
  await one.shared.enter();
  await waitFor(async () => (await seen()) === 1);
  const [own = ''] = await redis.zrange('processes', '0', '-1');
  const { dev } = statSync(path, { bigint: true });
  const snapshot = own.replace(`:${dev}:`, `:${dev + 1n}:`);
  await redis.zadd('processes', Number((await redis.time())[0]) * 1_000, snapshot);
  await waitFor(() => one.told().length > 0);
  expect(one.told()).toHaveLength(1);
  await one.shared.leave();
  await redis.del('processes');
});

test('a Redis that cannot be reached keeps nobody from starting', async () => {
  const away = new Redis('redis://127.0.0.1:1', { lazyConnect: true, maxRetriesPerRequest: 1 });
  away.on('error', () => {});
  const one = processOn(newFile(), { connection: away });
  await expect(one.shared.enter()).resolves.toBeUndefined();
  await one.shared.leave();
  away.disconnect();
});
