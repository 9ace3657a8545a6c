import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Logger } from './logging.ts';
import { refuseUnfitRedis } from './redis.ts';
import { writeOnce } from './write-once.ts';

const START_LIMIT_MS = 15_000;
const MOST_STARTS = 3;
const COMMAND_LIMIT_MS = 2_000;
const MAX_RETRY_MS = 1_000;

/** Each process that uses the private Redis holds one connection of this name, until it leaves. */
const USER_NAME = 'private-redis-user';
const LEAVING_NAME = 'private-redis-leaving';

/** A Redis to work with, until its release. */
export interface RedisLease {
  /** For ioredis. It holds a password: never log it. */
  url: string;
  /** Call it after the last use. A private Redis ends with its last user. */
  release(): Promise<void>;
}

/**
 * Opens the given Redis, or the private one of `dir`, for development. All processes with the same `dir` share it:
 * they read its port and password from a file. Each of them starts a server when nobody listens; the port decides
 * which server stays.
 *
 * @throws Error that says what to do if no Redis starts, or the given one is unfit
 */
export async function openRedis(options: {
  redisUrl?: string | undefined;
  dir: string;
  logger: Logger;
}): Promise<RedisLease> {
  const { redisUrl, logger } = options;
  if (redisUrl !== undefined) {
    await refuseUnfitRedis(redisUrl);
    return { url: redisUrl, release: async () => {} };
  }
  const dir = join(options.dir, 'redis');
  const program = findRedisProgram();
  const { config, port, url } = await readConfig(dir);

  let server: ChildProcess | undefined;
  let starts = 0;
  let isLeaving = false;
  let reason = 'it does not answer';
  const { promise: isReady, resolve, reject } = Promise.withResolvers<void>();
  const user = new Redis(url, {
    connectionName: USER_NAME,
    commandTimeout: COMMAND_LIMIT_MS,
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => (isLeaving ? null : Math.min(50 * attempt, MAX_RETRY_MS)),
  });
  user.on('ready', () => {
    // From now on a server that dies starts again without an end.
    starts = Number.NEGATIVE_INFINITY;
    resolve();
  });
  user.on('error', (error: NodeJS.ErrnoException) => {
    reason = error.message;
    const isStarting = server !== undefined && server.exitCode === null && server.signalCode === null;
    if (error.code !== 'ECONNREFUSED' || isStarting || isLeaving) return;
    if (starts++ < MOST_STARTS) server = startServer(program, dir, config);
    else reject();
  });
  const timer = setTimeout(reject, START_LIMIT_MS);
  try {
    await isReady;
  } catch {
    isLeaving = true;
    user.disconnect();
    throw new Error(
      `The private Redis does not run at port ${port}: ${reason}. See ${join(dir, 'server.log')}. If another program uses the port, delete ${config}.`,
    );
  } finally {
    clearTimeout(timer);
  }
  logger.info({ port }, 'private Redis is up');
  if (isStandIn(program)) {
    logger.warn(
      'There is no redis-server (6.2 or newer) or valkey-server: a small Redis in JavaScript takes its place. It is for trying out only: it is slower, and forgets everything when the app ends.',
    );
  }
  return {
    url,
    release: async () => {
      isLeaving = true;
      // A server that does not answer stays, and the next start joins it.
      await leave(user).catch(() => undefined);
      user.disconnect();
    },
  };
}

/** Ends the server with its last user. Of processes that leave together, the last one counts no user. */
async function leave(user: Redis): Promise<void> {
  await user.client('SETNAME', LEAVING_NAME);
  const clients = String(await user.client('LIST'));
  if (!clients.includes(` name=${USER_NAME} `)) await user.shutdown();
}

/** A command line; the path of a configuration file follows it. */
type RedisProgram = [command: string, ...args: string[]];

/** Whether it is the JavaScript one, which keeps no data and knows few settings. */
export const isStandIn = ([command]: RedisProgram): boolean => command === process.execPath;

/**
 * Finds `redis-server` or `valkey-server`, 6.2 or newer, or else the JavaScript one.
 *
 * @throws Error with the remedy if that development dependency is not installed
 */
export function findRedisProgram(): RedisProgram {
  for (const command of ['redis-server', 'valkey-server']) {
    const { stdout } = spawnSync(command, ['--version'], { encoding: 'utf8' });
    const [, major, minor] = /\bv=(\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
    if (100 * Number(major) + Number(minor) >= 602) return [command];
  }
  try {
    createRequire(import.meta.url).resolve('js-redis-server/core');
  } catch (cause) {
    const advice = 'set REDIS_URL, or install redis-server (6.2 or newer) or valkey-server';
    throw new Error(`There is no Redis: ${advice}.`, { cause });
  }
  return [process.execPath, join(import.meta.dirname, 'js-redis-main.ts')];
}

/** Reads the configuration of a directory's Redis. The first process draws its port and its password. */
async function readConfig(dir: string) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // A copy of the directory must not join this server: so its inode is in the name.
  const config = join(dir, `redis-${statSync(dir).ino}.conf`);
  if (!existsSync(config)) {
    const address = `bind 127.0.0.1\nport ${await findPort()}`;
    const password = `requirepass ${randomBytes(32).toString('base64url')}`;
    const settings = 'save ""\nappendonly yes\nmaxmemory-policy noeviction';
    writeOnce(config, `${address}\n${password}\n${settings}\n`);
  }
  const [, port, password] = /^port (\d+)\nrequirepass (\S+)$/m.exec(readFileSync(config, 'utf8')) ?? [];
  if (password === undefined) throw new Error(`${config} is damaged: delete it, and start again.`);
  return { config, port, url: `redis://:${password}@127.0.0.1:${port}` };
}

/** Systems give outgoing connections the ports from 32768 on: so it draws a lower one. */
async function findPort(): Promise<number> {
  const port = randomInt(20_000, 30_000);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return findPort();
  }
  server.close();
  await once(server, 'close');
  return port;
}

/** In a process group of its own: a terminal's Ctrl-C must not end it before the app has finished with it. */
function startServer([command, ...args]: RedisProgram, dir: string, config: string): ChildProcess {
  const log = openSync(join(dir, 'server.log'), 'a', 0o600);
  // The app's environment holds secrets, and the server may outlive the app.
  const env = { PATH: process.env.PATH };
  const server = spawn(command, [...args, config], {
    cwd: dir,
    detached: true,
    stdio: ['ignore', log, log],
    env,
  });
  closeSync(log);
  server.unref();
  return server;
}
