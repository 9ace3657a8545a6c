import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { findRedisProgram, isStandIn, openRedis, type RedisLease } from '../../src/runtime/private-redis.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { isRealRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const leases: RedisLease[] = [];

afterEach(() => vi.unstubAllEnvs());
afterAll(() => Promise.all(leases.map((lease) => lease.release())));

async function open(dir: string, logger = testLogger().logger): Promise<RedisLease> {
  const lease = await openRedis({ dir, logger });
  leases.push(lease);
  return lease;
}

async function ask<Answer>(url: string, question: (redis: Redis) => Promise<Answer>): Promise<Answer> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: null });
  redis.on('error', () => {});
  return question(redis).finally(() => redis.disconnect());
}

const ping = (url: string) => ask(url, (redis) => redis.ping());
const isAnswering = (url: string) => ping(url).then(Boolean, () => false);

/** The processes whose command line has this directory in it. */
function serversIn(dir: string): number[] {
  const processes = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const isServer = (line: string) => line.includes(join(dir, 'redis')) || line.includes(`:${portIn(dir)}`);
  return processes.filter(isServer).map((line) => Number.parseInt(line, 10));
}

const serverIn = (dir: string) => serversIn(dir)[0] ?? Number.NaN;

function configIn(dir: string): string {
  const [name = ''] = globSync('redis/*.conf', { cwd: dir });
  return join(dir, name);
}

function portIn(dir: string): number {
  return Number(/^port (\d+)$/m.exec(readFileSync(configIn(dir), 'utf8'))?.[1]);
}

/** A process that has the private Redis of a directory open. */
async function startHolder(dir: string, path = process.env.PATH ?? '') {
  const env = { PATH: path, CLIENT_SECRET: 'of-the-app-alone' };
  const holder = spawnEntry('test/support/hold-redis.ts', env, { args: [dir] });
  await holder.waitForOutput(/open/);
  return holder;
}

it('starts nothing if a Redis is given, even an absent one', async () => {
  const dir = join(tempDir(), 'data');
  const lease = await openRedis({ redisUrl: 'redis://127.0.0.1:9', dir, logger: testLogger().logger });
  expect(lease.url).toBe('redis://127.0.0.1:9');
  await lease.release();
  expect(existsSync(dir)).toBe(false);
});

it('is for trying out in JavaScript, and not shared with a copy of its directory', async () => {
  const [dir, copy] = [tempDir(), tempDir()];
  const { logger, lines } = testLogger();
  vi.stubEnv('PATH', '/usr/bin/nowhere');
  const { url } = await open(dir, logger);
  const told = expect.stringContaining('for trying out only');
  expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', msg: told }));
  cpSync(dir, copy, { recursive: true });
  expect((await open(copy)).url).not.toBe(url);
});

/** The JavaScript server runs everywhere, a server binary where there is one. */
describe.each([
  ['the JavaScript one', '/usr/bin/nowhere'],
  ...(isRealRedis ? [['a server binary', process.env.PATH ?? '']] : []),
])('a private Redis on %s', (_what, path = '') => {
  /** `ps` is needed afterwards: only the look for a program is without its directory. */
  const openHere = async (dir: string) => {
    vi.stubEnv('PATH', path);
    return open(dir).finally(() => vi.unstubAllEnvs());
  };

  it('is shared by all processes of its directory, and ends with the last', async () => {
    const dir = tempDir();
    const users = await Promise.all([openHere(dir), openHere(dir), openHere(dir)]);
    const [{ url } = { url: '' }, ...others] = users;
    expect(others.map((other) => other.url)).toEqual([url, url]);
    await users[0]?.release();
    await users[0]?.release();
    expect(await ping(url)).toBe('PONG');
    // Those that lost the port would take it yet.
    await waitFor(() => serversIn(dir).length === 1);
    await Promise.all(others.map((other) => other.release()));
    await waitFor(() => serversIn(dir).length === 0);
    expect(await isAnswering(url)).toBe(false);
  });

  it('outlives a killed starter without its secrets, and the next process joins it', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, path);
    const environment = (pid: number) =>
      execFileSync('ps', ['eww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
    expect(environment(starter.pid)).toContain('of-the-app-alone');
    await starter.stop('SIGKILL');
    const server = serverIn(dir);
    expect(environment(server)).not.toContain('of-the-app-alone');
    const lease = await openHere(dir);
    expect(serverIn(dir)).toBe(server);
    await lease.release();
    await waitFor(async () => !(await isAnswering(lease.url)));
  });

  it('survives the Ctrl-C that ends its starter, and then ends with it', async () => {
    const dir = tempDir();
    const starter = await startHolder(dir, path);
    expect(await starter.stop('SIGINT')).toEqual({ code: 0, signal: null });
    expect(starter.output()).toContain('still there: PONG');
    await waitFor(() => Number.isNaN(serverIn(dir)));
  });

  it('starts again at its address each time that it dies, for the user that is left', async () => {
    const dir = tempDir();
    const [one, other] = await Promise.all([openHere(dir), openHere(dir)]);
    await other.release();
    for (let death = 1; death <= 2; death++) {
      process.kill(serverIn(dir), 'SIGKILL');
      await waitFor(() => isAnswering(one.url));
    }
    await one.release();
  });

  it('refuses clients without its password, and on other addresses', async () => {
    const dir = tempDir();
    const { url } = await openHere(dir);
    const { password, port } = new URL(url);
    await expect(ping(`redis://127.0.0.1:${port}`)).rejects.toThrow('NOAUTH');
    expect(password.length).toBeGreaterThanOrEqual(32);
    expect(statSync(join(dir, 'redis')).mode & 0o777).toBe(0o700);
    expect(statSync(configIn(dir)).mode & 0o777).toBe(0o600);
    // Another address that a server for all of them would have.
    const elsewhere = connect({ host: '127.0.0.2', port: Number(port), timeout: 1_000 });
    const found = once(elsewhere, 'connect').then(() => 'reached');
    const none = once(elsewhere, 'timeout').then(() => 'nobody');
    expect(await Promise.race([found, none]).catch(() => 'nobody')).toBe('nobody');
    elsewhere.destroy();
  });
});

it.runIf(isRealRedis)('keeps its data from one run to the next, and evicts nothing', async () => {
  const dir = tempDir();
  const first = await open(dir);
  await ask(first.url, (redis) => redis.set('kept', 'yes'));
  await first.release();
  const second = await open(dir);
  expect(await ask(second.url, (redis) => redis.get('kept'))).toBe('yes');
  expect(await ask(second.url, (redis) => redis.info())).toContain('maxmemory_policy:noeviction');
});

it.each([
  ['Redis server v=6.0.16 sha=00000000:0 malloc=libc bits=64 build=0', true],
  ['Redis server v=6.2.0 sha=00000000:0 malloc=libc bits=64 build=0', false],
  ['Server v=10.0.0 sha=00000000:0 malloc=libc bits=64 build=0', false],
  ['no word of it', true],
])('looks at the version "%s", and passes over an old server: %s', (words, isPassedOver) => {
  const dir = tempDir();
  writeFileSync(join(dir, 'valkey-server'), `#!/bin/sh\necho '${words}'\n`, { mode: 0o755 });
  vi.stubEnv('PATH', dir);
  expect(isStandIn(findRedisProgram())).toBe(isPassedOver);
});

it('names the log of a server that does not start', async () => {
  const [dir, bin] = [tempDir(), tempDir()];
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo v=7.0 || { echo "Fatal: broken"; exit 3; }\n';
  writeFileSync(join(bin, 'redis-server'), script, { mode: 0o755 });
  vi.stubEnv('PATH', bin);
  await expect(open(dir)).rejects.toThrow(`See ${join(dir, 'redis/server.log')}`);
  expect(readFileSync(join(dir, 'redis/server.log'), 'utf8')).toContain('Fatal: broken');
});
