import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { Presence } from '../../src/runtime/presence.ts';
import { OtherDatabaseError, SharedRedis } from '../../src/runtime/shared-redis.ts';
import { dirBeside } from '../../src/store/existing-file.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
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

const KEY = 'partner-app:processes';
const LINE = 'another process works on the same Redis with another database';

function newFile(): string {
  const path = join(tempDir(), 'app.db');
  writeFileSync(path, '');
  return path;
}

const dirOf = (path: string) => dirBeside(`file:${path}`, 'processes');

/**
 * Has a process work with a file as if it were on a machine of another name, as the containers of one machine may be.
 *
 * @param like the file whose number it tells
 */
async function spawnElsewhere(path: string, like = path) {
  const id = randomUUID();
  const holder = spawnEntry('test/support/hold-presence.ts', {}, { args: [dirOf(path), id] });
  await holder.waitForOutput(/entered/);
  const { dev, ino } = statSync(like, { bigint: true });
  const member = JSON.stringify({ id, host: 'h', pid: 1, path, file: `another-machine:${dev}:${ino}` });
  const beat = async () => redis.zadd(KEY, Number((await redis.time())[0]) * 1_000, member);
  await beat();
  return { holder, member, beat };
}

function processOn(path: string, { connection = redis, patienceMs = 10_000 } = {}) {
  const { logger, lines } = testLogger();
  const id = `process-${entered.length}`;
  const processes = () => new Presence(dirOf(path), id);
  const shared = new SharedRedis(connection, { path, processes, logger, patienceMs });
  entered.push(shared);
  return { shared, lines, told: () => lines.filter(({ msg }) => msg === LINE) };
}

const seen = () => redis.zcard(KEY);

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
  // Of two, the one that told last that it lives may come last.
  const told = String(await refused.catch((error: unknown) => error));
  expect([path, link].some((one) => told.includes(one))).toBe(true);
  // And nothing of what is said where both have the same path.
  await expect(refused).rejects.toThrow(
    /set REDIS_URL to another Redis, or put another number at its end\.$/,
  );
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
  await redis.zadd(KEY, (Number(seconds) - 1) * 1_000, JSON.stringify(dead));
  const one = processOn(newFile());
  await one.shared.enter();
  await waitFor(async () => (await redis.zscore(KEY, JSON.stringify(dead))) === null);
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
  const [own = ''] = await redis.zrange(KEY, '0', '-1');
  const { dev } = statSync(path, { bigint: true });
  const snapshot = own.replace(`:${dev}:`, `:${dev + 1n}:`).replace(/"id":"[^"]+"/, '"id":"another"');
  await waitFor(async () => {
    await redis.zadd(KEY, Number((await redis.time())[0]) * 1_000, snapshot);
    return one.told().length > 0;
  });
  expect(one.told()).toHaveLength(1);
  await one.shared.leave();
  await redis.del(KEY);
});

test('a process in a container that names the machine otherwise works with the same file if it holds its lock beside it; one that was killed is not told as another, nor if it was never seen alive', async () => {
  const path = newFile();
  const elsewhere = await spawnElsewhere(path);
  const one = processOn(path);
  const startedAt = performance.now();
  await one.shared.enter();
  expect(performance.now() - startedAt).toBeLessThan(2_500);
  await waitFor(async () => (await seen()) === 2);

  await elsewhere.holder.stop('SIGKILL');
  await elsewhere.beat();
  const own = (await redis.zrange(KEY, '0', '-1')).find((member) => member !== elsewhere.member) ?? '';
  const beatenAt = Number(await redis.zscore(KEY, own));
  // A second beat, so that what the first one found is told.
  await waitFor(async () => Number(await redis.zscore(KEY, own)) > beatenAt + 1_500);
  const neverSeen = elsewhere.member.replace(/"id":"[^"]+"/, '"id":"dead at once"');
  await redis.zadd(KEY, Number((await redis.time())[0]) * 1_000, neverSeen);
  await waitFor(async () => (await redis.zscore(KEY, neverSeen)) === null);
  expect(one.told()).toEqual([]);
  await one.shared.leave();
  await redis.del(KEY);
});

test('a cloned machine, whose copy of the file has the same number and a file of the same lock that nobody holds there, is refused', async () => {
  const path = newFile();
  const clone = newFile();
  await spawnElsewhere(path, clone);
  cpSync(dirOf(path), dirOf(clone), { recursive: true });
  await expect(processOn(clone, { patienceMs: 500 }).shared.enter()).rejects.toThrow(OtherDatabaseError);
  await redis.del(KEY);
});

test('who is refused for a file of the same path, which may be the same one, is told how both can know it', async () => {
  const path = newFile();
  const member = JSON.stringify({ id: 'nobody', host: 'h', pid: 1, path, file: 'another-machine:1:1' });
  await redis.zadd(KEY, Number((await redis.time())[0]) * 1_000, member);
  const refused = processOn(path, { patienceMs: 500 }).shared.enter();
  await expect(refused).rejects.toThrow(
    /If both are one file, each has to keep its own in the directory beside it/,
  );
  await redis.del(KEY);
});

test('a copy by hard links, which has the files of the locks that are held, is another one', async () => {
  const path = newFile();
  const copy = newFile();
  const { holder } = await spawnElsewhere(path, copy);
  mkdirSync(dirOf(copy));
  for (const file of readdirSync(dirOf(path))) linkSync(join(dirOf(path), file), join(dirOf(copy), file));
  const refused = processOn(copy, { patienceMs: 500 }).shared.enter();
  await expect(refused).rejects.toThrow(OtherDatabaseError);
  await holder.stop();
  await redis.del(KEY);
});

test('a file of a lock that somebody removed is made anew', async () => {
  const path = newFile();
  const one = processOn(path);
  await one.shared.enter();
  rmSync(dirOf(path), { recursive: true });
  await waitFor(() => existsSync(dirOf(path)) && readdirSync(dirOf(path)).length === 1);
  await one.shared.leave();
});

test('the files of processes that were killed go with the next start; its own goes with its end', async () => {
  const path = newFile();
  const elsewhere = await spawnElsewhere(path);
  await elsewhere.holder.stop('SIGKILL');
  await redis.del(KEY);
  expect(readdirSync(dirOf(path))).toHaveLength(1);
  const one = processOn(path);
  await one.shared.enter();
  expect(readdirSync(dirOf(path))).toEqual([expect.stringMatching(/^process-/)]);
  await one.shared.leave();
  expect(readdirSync(dirOf(path))).toEqual([]);
});

test('a process whose lock cannot be kept says so, and starts', async () => {
  const path = newFile();
  writeFileSync(dirOf(path), 'a file in the place of the directory');
  const one = processOn(path);
  await one.shared.enter();
  expect(one.lines).toMatchObject([
    { level: 'warn', msg: expect.stringContaining('processes of other containers may not start beside') },
  ]);
  await one.shared.leave();
});

test('a set of a plainer name that others keep on the Redis is not in the way', async () => {
  await redis.sadd('processes', 'of another program');
  const [one, other] = [processOn(newFile()), processOn(newFile(), { patienceMs: 500 })];
  await one.shared.enter();
  await waitFor(async () => (await seen()) === 1);
  await expect(other.shared.enter()).rejects.toThrow(OtherDatabaseError);
  await one.shared.leave();
});

test('a Redis that cannot be reached keeps nobody from starting', async () => {
  const away = new Redis('redis://127.0.0.1:1', { lazyConnect: true, maxRetriesPerRequest: 1 });
  away.on('error', () => {});
  const one = processOn(newFile(), { connection: away });
  await expect(one.shared.enter()).resolves.toBeUndefined();
  await one.shared.leave();
  away.disconnect();
});

test('nor does one that takes everything and answers nothing; and it keeps nobody from ending', async () => {
  const { port } = await startRedisServer();
  const proxy = await startTcpProxy(port);
  const mute = new Redis(redisUrlAt(proxy.port));
  await once(mute, 'ready');
  proxy.silence();
  const one = processOn(newFile(), { connection: mute });
  await expect(one.shared.enter()).resolves.toBeUndefined();
  await expect(one.shared.leave()).resolves.toBeUndefined();
  mute.disconnect();
});
