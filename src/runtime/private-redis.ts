import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from './logging.ts';
import { urlOf } from './private-redis/address.ts';
import { KeptServer } from './private-redis/kept-server.ts';
import { findServerProgram, type ServerKind } from './private-redis/server-programs.ts';
import { checkNumber } from './redis-number.ts';

/** A Redis to work with, until it is released. */
export interface RedisLease {
  /** What ioredis takes; holds a password: never log it. */
  url: string;
  kind: 'given' | ServerKind;
  /** Gives it back, after the last use. A private Redis ends with its last user, within about three seconds. */
  release(): Promise<void>;
}

interface Options {
  /** A Redis that is there already: nothing is started. */
  redisUrl?: string | undefined;
  /** A private Redis keeps its data and its address in `redis/` below; who gives the same one shares the Redis. */
  dir: string;
  logger: Logger;
  /** Where server binaries are looked for, instead of the environment's PATH. */
  searchPath?: string | undefined;
  /**
   * Told once, with a sentence for people, when a private Redis that died cannot be had again at its address: a program
   * has taken its port meanwhile. This process has to end then.
   */
  onLost?: (error: Error) => void;
}

/**
 * Provides a Redis: the given one; else the private one of `dir`, joined when another process has started it
 * (even one that was killed since), or started. One that dies is started again at the same address, by whichever of its
 * users notices first. Its data outlive it, unless it is the JavaScript one.
 *
 * @throws Error in plain words when none can be had, or the given one does not have the database of its number
 */
export async function openRedis(options: Options): Promise<RedisLease> {
  if (options.redisUrl !== undefined) {
    await checkNumber(options.redisUrl);
    return { url: options.redisUrl, kind: 'given', release: async () => {} };
  }
  const { logger, onLost = () => {} } = options;
  const dir = join(options.dir, 'redis');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const findProgram = () => findServerProgram(options.searchPath ?? process.env.PATH ?? '');
  const server = await KeptServer.open({ dir, findProgram, logger, onLost });
  const { kind, port } = server.address;
  logger.info({ kind, port }, 'private Redis is up');
  if (kind === 'js-redis-server') {
    logger.warn(
      'No redis-server (6.2 or newer) or valkey-server was found: a small Redis in JavaScript stands in. It is for trying out only: slower, and it forgets everything when the app ends.',
    );
  }
  return { url: urlOf(server.address), kind, release: () => server.release() };
}
