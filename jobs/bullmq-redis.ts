import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis, RedisOptions } from 'ioredis';

/** How long after trouble BullMQ's first question is asked again, in milliseconds. */
const PAUSE_MS = 500;

/** What BullMQ does with a connection, where it is to be done otherwise than ioredis does it. */
export interface Otherwise {
  /** Opens one like it, for blocking commands: BullMQ itself does so without a word when that one fails. */
  duplicate?: (options?: Pick<RedisOptions, 'connectionName'>) => Redis;
  /** Waits for something to come into a sorted set, for so many seconds at the most. */
  bzpopmin?: (key: string, seconds: number) => Promise<unknown>;
}

/**
 * A connection as BullMQ is given it. At its start BullMQ asks once, by INFO, how old Redis is, and keeps the answer: a
 * failure it would repeat for ever to whoever wants anything of the queue. So this one tries on until it has an answer.
 *
 * @param closing ends that: a connection that is closed while it was away does not say so
 */
export function forBullmq(redis: Redis, closing: AbortSignal, otherwise: Otherwise = {}): Redis {
  const own: Record<string | symbol, unknown> = { ...otherwise, info: () => knownInfo(redis, closing) };
  return new Proxy(redis, {
    get: (_, name) => {
      const value = own[name] ?? Reflect.get(redis, name);
      // ioredis goes on calling itself, not this.
      return typeof value === 'function' && !(name in own) ? value.bind(redis) : value;
    },
  });
}

/** Whether Redis forbids a command to the app's user, directly or in a script. */
export function isForbidden(error: Error): boolean {
  return /^NOPERM |can't run this command|ACL failure in script/.test(error.message);
}

async function knownInfo(redis: Redis, closing: AbortSignal): Promise<string> {
  for (;;) {
    try {
      return await infoOf(redis);
    } catch (error) {
      if (closing.aborted || redis.status === 'end') throw error;
    }
    await sleep(PAUSE_MS, undefined, { ref: false, signal: closing });
  }
}

/** Where INFO is forbidden, as it often is, what a connection begins with says of it what BullMQ wants to know. */
async function infoOf(redis: Redis): Promise<string> {
  try {
    return await redis.info();
  } catch (error) {
    if (!(error instanceof Error && isForbidden(error))) throw error;
    const said = await redis.hello();
    const told = (name: string) => said[said.indexOf(name) + 1];
    return `${told('server')}_version:${told('version')}`;
  }
}
