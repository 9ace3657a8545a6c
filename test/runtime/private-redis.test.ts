import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { withFileLock } from '../../src/runtime/file-lock.ts';
import { isRunning } from '../../src/runtime/private-redis/process.ts';
import { findServerProgram } from '../../src/runtime/private-redis/server-programs.ts';
import { openRedis, type RedisLease } from '../../src/runtime/private-redis.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const installed = findServerProgram(process.env.PATH ?? '');
const nowhere = tempDir();
const leases: RedisLease[] = [];

/** The JavaScript server runs everywhere, a server binary where there is one. */
const variants = [
  { kind: 'js-redis-server', searchPath: nowhere },
  ...(installed.kind === 'js-redis-server' ? [] : [{ kind: installed.kind, searchPath: process.env.PATH }]),
];

afterAll(() => Promise.all(leases.map((lease) => lease.release())));

async function open(
  dir: string,
  searchPath: string | undefined,
  logger = testLogger().logger,
): Promise<RedisLease> {
  const lease = await openRedis({ dir, searchPath, logger });
  leases.push(lease);
  return lease;
}

async function withRedis<Result>(url: string, action: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: null });
  redis.on('error', () => {});
  try {
    return await action(redis);
  } finally {
    redis.disconnect();
  }
}

/** Whether a port is taken: a server that was killed may have it a little longer than it answers. */
async function isListening(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe
      .once('error', () => resolve(true))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(false)));
  });
}

const ping = (url: string): Promise<string> => withRedis(url, (redis) => redis.ping());
const addressIn = (dir: string): { pid: number; port: number } =>
  JSON.parse(readFileSync(join(dir, 'redis/address.json'), 'utf8'));

it('takes the Redis that is given, and starts nothing', async () => {
  const dir = join(tempDir(), 'data');
  const lease = await openRedis({ redisUrl: 'redis://elsewhere:1', dir, logger: testLogger().logger });
  expect(lease).toMatchObject({ url: 'redis://elsewhere:1', kind: 'given' });
  await lease.release();
  expect(existsSync(dir)).toBe(false);
});

/** A process that has the private Redis of a directory open. */
async function startHolder(dir: string, searchPath: string | undefined) {
  const env = { SEARCH_PATH: searchPath ?? '', CLIENT_SECRET: 'of-the-app-alone' };
  const holder = spawnEntry('test/support/hold-redis.ts', env, { args: [dir] });
  await holder.waitForOutput(/open/);
  return holder;
}

/** What a process was started with. */
function environmentOf(pid: number): string {
  if (process.platform === 'linux') return readFileSync(`/proc/${pid}/environ`, 'utf8');
  return execFileSync('ps', ['eww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
}

describe.each(variants)('on $kind', ({ kind, searchPath }) => {
  it('serves all that open it at the same time, until the last one releases it', async () => {
    const dir = tempDir();
    const [one, other] = await Promise.all([open(dir, searchPath), open(dir, searchPath)]);
    expect(one.kind).toBe(kind);
    expect(other.url).toBe(one.url);
    const { pid } = addressIn(dir);
    await one.release();
    await one.release();
    expect(await ping(other.url)).toBe('PONG');
    await other.release();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(join(dir, 'redis/address.json'))).toBe(false);
    await expect(ping(other.url)).rejects.toThrow();
  });

  it('is joined by other processes, and outlives a starter that is killed', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, searchPath);
    await starter.stop('SIGKILL');
    const { pid } = addressIn(dir);
    const lease = await open(dir, searchPath);
    expect(addressIn(dir).pid).toBe(pid);
    expect(await ping(lease.url)).toBe('PONG');
    await lease.release();
    expect(isRunning(pid)).toBe(false);
  });

  it('is told nothing of its starter’s secrets', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, searchPath);
    expect(environmentOf(starter.pid)).toContain('of-the-app-alone');
    expect(environmentOf(addressIn(dir).pid)).not.toContain('of-the-app-alone');
    await starter.stop();
  });

  it('survives the Ctrl-C that ends its starter, and then ends with it', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, searchPath);
    const { pid } = addressIn(dir);
    expect(await starter.stop('SIGINT')).toEqual({ code: 0, signal: null });
    expect(starter.output()).toContain('still there: PONG');
    expect(isRunning(pid)).toBe(false);
  });

  it('can be reached at the address of this machine for itself alone', async () => {
    const { url } = await open(tempDir(), searchPath);
    expect(await ping(url)).toBe('PONG');
    // Another address that a server for all of them would have.
    const elsewhere = connect({ host: '127.0.0.2', port: Number(new URL(url).port), timeout: 1_000 });
    const found = once(elsewhere, 'connect').then(() => 'reached');
    const none = once(elsewhere, 'timeout').then(() => 'nobody');
    expect(await Promise.race([found, none]).catch(() => 'nobody')).toBe('nobody');
    elsewhere.destroy();
  });

  it('lets nobody in without its password', async () => {
    const dir = tempDir();
    const { url } = await open(dir, searchPath);
    const { port } = addressIn(dir);
    await expect(ping(`redis://127.0.0.1:${port}`)).rejects.toThrow('NOAUTH');
    expect(new URL(url).password.length).toBeGreaterThanOrEqual(32);
    expect(statSync(join(dir, 'redis')).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, 'redis/address.json')).mode & 0o777).toBe(0o600);
  });

  it('is not joined from a copy of its directory, which has one of its own at another port', async () => {
    const [dir, one, other] = [tempDir(), tempDir(), tempDir()];
    const original = await open(dir, searchPath);
    for (const copy of [one, other]) cpSync(dir, copy, { recursive: true });
    const copied = await open(one, searchPath);
    expect(copied.url).not.toBe(original.url);
    await withRedis(copied.url, (redis) => redis.set('of', 'the copy'));
    expect(await withRedis(original.url, (redis) => redis.get('of'))).toBeNull();
    await copied.release();
    expect(await ping(original.url)).toBe('PONG');
    // Nor does it take the place of one that is away: what outlived that one would find the copy there.
    await original.release();
    const later = await open(other, searchPath);
    expect(new URL(later.url).password).not.toBe(new URL(original.url).password);
  });

  it('is still found by an address that an earlier version kept, which does not say of which directory', async () => {
    const dir = tempDir();
    const lease = await open(dir, searchPath);
    const path = join(dir, 'redis', 'address.json');
    const { place: _, ...address } = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify(address));
    const next = await open(dir, searchPath);
    expect(next.url).toBe(lease.url);
    await lease.release();
    await next.release();
  });

  it('is still found where its directory has been given another name', async () => {
    const parent = tempDir();
    const [before, after] = [join(parent, 'before'), join(parent, 'after')];
    mkdirSync(before);
    const lease = await open(before, searchPath);
    renameSync(before, after);
    const { pid } = addressIn(after);
    const next = await open(after, searchPath);
    expect(next.url).toBe(lease.url);
    await lease.release();
    expect(await ping(next.url)).toBe('PONG');
    await next.release();
    expect(isRunning(pid)).toBe(false);
  });

  it('starts anew where a crash left its address behind', async () => {
    const dir = tempDir();
    const first = await open(dir, searchPath);
    const { pid } = addressIn(dir);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => isRunning(pid)).toBe(false);
    const second = await open(dir, searchPath);
    expect(await ping(second.url)).toBe('PONG');
    expect(addressIn(dir).pid).not.toBe(pid);
    await first.release();
    expect((await open(dir, searchPath)).url).toBe(second.url);
    expect(await ping(second.url)).toBe('PONG');
  });

  it('ends with the last of users that leave at the same time', async () => {
    const dir = tempDir();
    for (let round = 0; round < 5; round++) {
      const users = await Promise.all([open(dir, searchPath), open(dir, searchPath), open(dir, searchPath)]);
      const { pid } = addressIn(dir);
      await Promise.all(users.map((user) => user.release()));
      expect(isRunning(pid)).toBe(false);
    }
  });

  it('ends with its last user also where its directory was deleted, which is not made anew', async () => {
    const dir = tempDir();
    const { logger, lines } = testLogger();
    const [one, other] = [await open(dir, searchPath, logger), await open(dir, searchPath, logger)];
    const { pid } = addressIn(dir);
    rmSync(join(dir, 'redis'), { recursive: true });
    await one.release();
    expect(await ping(other.url)).toBe('PONG');
    await other.release();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(join(dir, 'redis'))).toBe(false);
    expect(lines.map(({ msg }) => msg)).not.toContain('the private Redis may have been left running');
  });

  it('ends with its last user also where another one has taken the place of its deleted directory', async () => {
    const dir = tempDir();
    const first = await open(dir, searchPath);
    const { pid } = addressIn(dir);
    rmSync(join(dir, 'redis'), { recursive: true });
    const second = await open(dir, searchPath);
    await first.release();
    expect(isRunning(pid)).toBe(false);
    expect(await ping(second.url)).toBe('PONG');
    expect((await open(dir, searchPath)).url).toBe(second.url);
  });

  it('is started again at the same address when it dies, by one that is left, and then ends with it', async () => {
    const dir = tempDir();
    const { logger, lines } = testLogger();
    const starter = await startHolder(dir, searchPath);
    const [one, other] = await Promise.all([open(dir, searchPath, logger), open(dir, searchPath, logger)]);
    await starter.stop('SIGKILL');
    for (let death = 1; death <= 2; death++) {
      const { pid } = addressIn(dir);
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => ping(one.url).catch(() => undefined)).toBe('PONG');
      // It answers before its address is noted.
      await expect.poll(() => addressIn(dir).pid).not.toBe(pid);
      const told = () => lines.filter(({ msg }) => msg === 'the private Redis has died: it is started again');
      await expect.poll(told).toHaveLength(death);
    }
    await one.release();
    // If the other was still on its way back, the one was the last to leave: then it is started once more.
    await expect.poll(() => ping(other.url).catch(() => undefined)).toBe('PONG');
    await expect.poll(() => isRunning(addressIn(dir).pid)).toBe(true);
    const { pid } = addressIn(dir);
    await other.release();
    expect(isRunning(pid)).toBe(false);
  });

  it('is not started again by one that was about to do so, and has left meanwhile', async () => {
    const dir = tempDir();
    const user = await startHolder(dir, searchPath);
    const { pid, port } = addressIn(dir);
    await withFileLock(join(dir, 'redis/lock'), 1_000, async () => {
      process.kill(pid, 'SIGKILL');
      await user.waitForOutput(/gone/);
      process.kill(user.pid, 'SIGTERM');
      await user.waitForOutput(/released/);
    });
    const exits: unknown[] = [];
    void user.exited.then((exit) => exits.push(exit));
    const outcome = await waitFor(() => exits[0] ?? (addressIn(dir).pid !== pid && 'it is started again'));
    expect(outcome).toEqual({ code: 0, signal: null });
    expect(await isListening(port)).toBe(false);
  });

  it('is started where the last one ran, for users that outlived it', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, searchPath);
    const { pid, port } = addressIn(dir);
    await starter.stop('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => isRunning(pid)).toBe(false);
    const lease = await open(dir, searchPath);
    expect(await ping(lease.url)).toBe('PONG');
    expect(addressIn(dir).port).toBe(port);
  });

  it('tells a user whose port is taken meanwhile to end, and is started elsewhere then', async () => {
    const dir = tempDir();
    const lost = Promise.withResolvers<Error>();
    const lease = await openRedis({
      dir,
      searchPath,
      logger: testLogger().logger,
      onLost: lost.resolve,
    });
    leases.push(lease);
    const { pid, port } = addressIn(dir);
    const stranger = createServer((socket) => socket.on('error', () => {}).destroy());
    await withFileLock(join(dir, 'redis/lock'), 1_000, async () => {
      process.kill(pid, 'SIGKILL');
      await expect.poll(() => isListening(port)).toBe(false);
      await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve));
    });
    expect((await lost.promise).message).toMatch(
      new RegExp(`private Redis has died and cannot be had again on port ${port}: another program`),
    );
    const next = await open(dir, searchPath);
    expect(await ping(next.url)).toBe('PONG');
    expect(addressIn(dir).port).not.toBe(port);
    await lease.release();
    expect(await ping(next.url)).toBe('PONG');
    await new Promise((resolve) => stranger.close(resolve));
  });

  it('does not join a stranger that has its port now', async () => {
    const dir = tempDir();
    const stranger = createServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    );
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    const address = stranger.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    mkdirSync(join(dir, 'redis'), { mode: 0o700 });
    const stale = { kind, port: address.port, password: 'old', pid: process.pid };
    writeFileSync(join(dir, 'redis/address.json'), JSON.stringify(stale));
    const lease = await open(dir, searchPath);
    expect(await ping(lease.url)).toBe('PONG');
    expect(addressIn(dir).port).not.toBe(address.port);
    await new Promise((resolve) => stranger.close(resolve));
  });

  it('says which process to end when a server holds its files and does not answer', async () => {
    const dir = tempDir();
    const { logger, lines } = testLogger();
    const lease = await open(dir, searchPath, logger);
    const { pid } = addressIn(dir);
    process.kill(pid, 'SIGSTOP');
    try {
      await expect(open(dir, searchPath)).rejects.toThrow(`process ${pid}`);
      await lease.release();
      expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', pid }));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    // It can be had again, and then ends in order.
    await (await open(dir, searchPath)).release();
    expect(isRunning(pid)).toBe(false);
  });
});

it('keeps its data from one run to the next where there is a server binary, and evicts nothing', async () => {
  const isBinary = installed.kind !== 'js-redis-server';
  if (!isBinary) {
    process.stderr.write(
      'NO redis-server OR valkey-server ON THE PATH: what only a server binary does is not tested on this machine.\n',
    );
  }
  const dir = tempDir();
  const first = await open(dir, process.env.PATH);
  const policy = await withRedis(first.url, async (redis) => {
    await redis.set('kept', 'yes');
    return redis.config('GET', 'maxmemory-policy');
  });
  await first.release();
  const second = await open(dir, process.env.PATH);
  expect(await withRedis(second.url, (redis) => redis.get('kept'))).toBe(isBinary ? 'yes' : null);
  expect(policy).toEqual(isBinary ? ['maxmemory-policy', 'noeviction'] : expect.any(Array));
});

it('is found under the name of Valkey too', () => {
  const dir = tempDir();
  const command = join(dir, 'valkey-server');
  writeFileSync(command, '', { mode: 0o755 });
  expect(findServerProgram([nowhere, dir].join(delimiter))).toEqual({
    kind: 'valkey-server',
    command,
    args: ['-'],
  });
});

it.each([
  ['Redis server v=4.0.14 sha=00000000:0 malloc=libc bits=64 build=0', 'js-redis-server'],
  ['Redis server v=6.0.16 sha=00000000:0 malloc=libc bits=64 build=0', 'js-redis-server'],
  ['Redis server v=6.2.0 sha=00000000:0 malloc=libc bits=64 build=0', 'redis-server'],
  ['Redis server v=7.0.15 sha=00000000:0 malloc=libc bits=64 build=0', 'redis-server'],
  ['Redis server v=10.0.0 sha=00000000:0 malloc=libc bits=64 build=0', 'redis-server'],
  ['no word of it', 'redis-server'],
])('is not one that is too old: with a redis-server that says "%s", %s', (words, kind) => {
  const dir = tempDir();
  writeFileSync(join(dir, 'redis-server'), `#!/bin/sh\necho '${words}'\n`, { mode: 0o755 });
  expect(findServerProgram(dir).kind).toBe(kind);
});

it('says plainly that the JavaScript one is for trying out', async () => {
  const { logger, lines } = testLogger();
  await open(tempDir(), nowhere, logger);
  expect(lines).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: expect.stringContaining('for trying out only') }),
  );
});

it('shows the last words of a server that does not start', async () => {
  const dir = tempDir();
  const bin = tempDir();
  writeFileSync(join(bin, 'redis-server'), '#!/bin/sh\necho "Fatal: this is not a Redis"\nexit 3\n', {
    mode: 0o755,
  });
  await expect(openRedis({ dir, searchPath: bin, logger: testLogger().logger })).rejects.toThrow(
    /did not start[\s\S]*Fatal: this is not a Redis/,
  );
});
