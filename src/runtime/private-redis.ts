import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Logger } from './logging.ts';
import { refuseUnfitRedis } from './redis.ts';

const START_LIMIT_MS = 15_000;
const MOST_STARTS = 3;
const COMMAND_LIMIT_MS = 2_000;
const MAX_RETRY_MS = 1_000;

/** Each process that uses the private Redis holds one connection of this name, until it leaves. */
const USER_NAME = 'private-redis-user';
const LEAVING_NAME = 'private-redis-leaving';

/** A Redis to work with, until it is released. */
export interface RedisLease {
  /** What ioredis takes; holds a password: never log it. */
  url: string;
  /** Gives it back, after the last use. A private Redis ends with its last user. */
  release(): Promise<void>;
}

/**
 * Provides a Redis: the given one, else the private one of `dir`, for development. All processes with the same `dir` share
 * it, by a port and a password that are drawn once. Any of them starts the server when nobody listens there: of two
 * servers, one gets the port and the other one ends. A server that outlived its users is joined by the next.
 *
 * @throws Error that says what to do when none can be had, or the given one cannot be worked with
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
    // From now on it is started again whenever it has died.
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
      `The private Redis cannot be had at port ${port}: ${reason}. See ${join(dir, 'server.log')}. If another program has taken the port, delete ${config}.`,
    );
  } finally {
    clearTimeout(timer);
  }
  logger.info({ port }, 'private Redis is up');
  if (isStandIn(program)) {
    logger.warn(
      'No redis-server (6.2 or newer) or valkey-server was found: a small Redis in JavaScript stands in. It is for trying out only: slower, and it forgets everything when the app ends.',
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

/** Of several processes that leave at the same time the last one counts no user. */
async function leave(user: Redis): Promise<void> {
  await user.client('SETNAME', LEAVING_NAME);
  const clients = String(await user.client('LIST'));
  if (!clients.includes(` name=${USER_NAME} `)) await user.shutdown();
}

/** A command line that lacks the path of a Redis configuration file at its end. */
type RedisProgram = [command: string, ...args: string[]];

/** Whether it is the JavaScript one, which keeps no data and knows few settings. */
export function isStandIn([command]: RedisProgram): boolean {
  return command === process.execPath;
}

/**
 * Finds what a Redis can run on: `redis-server` or `valkey-server`, 6.2 or newer, else the JavaScript one.
 *
 * @throws Error with what to do where that, a development dependency, is not installed
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

/** Reads the configuration of a directory's Redis, or makes it, with a port and a password of its own. */
async function readConfig(dir: string) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // A copy of the directory is another one's: it must not join this server.
  const config = join(dir, `redis-${statSync(dir).ino}.conf`);
  if (!existsSync(config)) {
    const password = randomBytes(32).toString('base64url');
    const address = `bind 127.0.0.1\nport ${await findPort()}\nrequirepass ${password}\n`;
    const draft = `${config}.${randomBytes(6).toString('hex')}`;
    writeFileSync(draft, `${address}save ""\nappendonly yes\nmaxmemory-policy noeviction\n`, { mode: 0o600 });
    try {
      // Unlike a rename, a link does not replace the file of a process that starts at the same time.
      linkSync(draft, config);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      rmSync(draft);
    }
  }
  const [, port, password] = /^port (\d+)\nrequirepass (\S+)$/m.exec(readFileSync(config, 'utf8')) ?? [];
  if (password === undefined) throw new Error(`${config} is damaged: delete it, and start again.`);
  return { config, port, url: `redis://:${password}@127.0.0.1:${port}` };
}

/** Below the ports that systems give to outgoing connections, from 32768 on. */
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
  const server = spawn(command, [...args, config], {
    cwd: dir,
    detached: true,
    stdio: ['ignore', log, log],
    // In the app's environment there are secrets, and the server may outlive the app.
    env: { PATH: process.env.PATH },
  });
  closeSync(log);
  server.unref();
  return server;
}
