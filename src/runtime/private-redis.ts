import { mkdirSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { FileLockTimeoutError, withFileLock } from './file-lock.ts';
import type { Logger } from './logging.ts';
import { type Address, readAddress, removeAddress, urlOf } from './private-redis/address.ts';
import { join, type Membership } from './private-redis/membership.ts';
import { endProcess, isRunning } from './private-redis/process.ts';
import { findServerProgram, type ServerKind } from './private-redis/server-programs.ts';
import { startServer } from './private-redis/start-server.ts';

/** Longer than a server may take to start, as others wait for that. */
const OPEN_LOCK_LIMIT_MS = 20_000;
const RELEASE_LOCK_LIMIT_MS = 1_000;

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
}

/**
 * Provides a Redis: the given one; else the private one of `dir`, joined when another process has started it
 * (even one that was killed since), or started. Its data outlive it, unless it is the JavaScript one.
 *
 * @throws Error in plain words when none can be had
 */
export async function openRedis(options: Options): Promise<RedisLease> {
  if (options.redisUrl !== undefined) {
    return { url: options.redisUrl, kind: 'given', release: async () => {} };
  }
  const { logger } = options;
  const dir = joinPath(options.dir, 'redis');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const lock = joinPath(dir, 'lock');
  const { address, member } = await withFileLock(
    lock,
    OPEN_LOCK_LIMIT_MS,
    async () =>
      (await joinKept(dir)) ??
      (await startServer(findServerProgram(options.searchPath ?? process.env.PATH ?? ''), dir)),
  );
  logger.info({ kind: address.kind, port: address.port }, 'private Redis is up');
  if (address.kind === 'js-redis-server') {
    logger.warn(
      'No redis-server or valkey-server was found: a small Redis in JavaScript stands in. It is for trying out only: slower, and it forgets everything when the app ends.',
    );
  }
  let released: Promise<void> | undefined;
  const release = async (): Promise<void> => {
    try {
      await withFileLock(lock, RELEASE_LOCK_LIMIT_MS, () => leave(dir, address, member));
    } catch (error) {
      member.leave();
      // A lock that is taken means somebody is starting or joining: that one, not we, is the last user.
      if (error instanceof FileLockTimeoutError) return;
      logger.warn({ err: error, pid: address.pid }, 'the private Redis may have been left running');
    }
  };
  return {
    url: urlOf(address),
    kind: address.kind,
    release: () => {
      released ??= release();
      return released;
    },
  };
}

async function joinKept(dir: string): Promise<{ address: Address; member: Membership } | undefined> {
  const address = readAddress(dir);
  if (address === undefined || !isRunning(address.pid)) return undefined;
  const member = await join(address);
  if (typeof member === 'object') return { address, member };
  if (member === 'silent') {
    // A second server on the same files would spoil them.
    throw new Error(
      `The private Redis (process ${address.pid}) does not answer: end that process, then start again.`,
    );
  }
  return undefined;
}

async function leave(dir: string, address: Address, member: Membership): Promise<void> {
  const others = await member.countOthers();
  member.leave();
  if (others > 0) return;
  await endProcess(address.pid);
  // After a crash of ours somebody may have started another since.
  if (readAddress(dir)?.password === address.password) removeAddress(dir);
}
