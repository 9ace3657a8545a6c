import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { takeName } from '../tokens/lock.ts';
import {
  endAtOnce,
  endedName,
  redisNow,
  replaceAtOnce,
  type SessionReplacement,
} from './session-replacement.ts';
import { StoreUnavailableError } from './web-error.ts';

/** A person is waiting: a page that says "try again" beats one that never comes. */
const SESSION_STORE_TIMEOUT_MS = 2_000;

/** What is left of that for the answer to a command that must not run any more once nobody waits for it. */
const ANSWER_MS = 200;

// A request that had read the session before its end must not bring it back.
const SET_UNLESS_ENDED = `
if redis.call('EXISTS', KEYS[2]) == 1 then return false end
return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])`;

/** The part of node-redis' client that connect-redis calls for one session, and what is done to two at once. */
export interface SessionClient {
  get(key: string): Promise<string | null>;
  set(
    key: string,
    value: string,
    options: { expiration: { type: 'EX'; value: number } },
  ): Promise<string | null>;
  expire(key: string, seconds: number): Promise<number>;
  /** Answers how many sessions have ended with it; the newer ones that have taken their place are among them. */
  del(keys: string[]): Promise<number>;
  /** Answers false when the session that was to be replaced has ended. */
  replace(replacement: SessionReplacement): Promise<boolean>;
}

/**
 * Waits at most `timeoutMs` for `answer`, which an unreachable Redis may keep in a queue for ever.
 *
 * @throws StoreUnavailableError when Redis fails or is slower
 */
export async function within<T>(answer: Promise<T>, timeoutMs = SESSION_STORE_TIMEOUT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailableError('Redis did not answer in time')), timeoutMs);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    throw error instanceof StoreUnavailableError
      ? error
      : new StoreUnavailableError('Redis cannot be reached', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Shows an ioredis client to connect-redis in the shape of node-redis, with a limit on every wait.
 * Only what express-session uses is there; listing all sessions is not. A session that was deleted stays deleted.
 *
 * @throws StoreUnavailableError from every call when Redis fails or is slower than `timeoutMs`
 */
export function sessionClient(redis: Redis, timeoutMs = SESSION_STORE_TIMEOUT_MS): SessionClient {
  return {
    get: (key) => within(redis.get(key), timeoutMs),
    set: (key, value, options) =>
      within(
        redis.eval(SET_UNLESS_ENDED, 2, key, endedName(key), value, options.expiration.value),
        timeoutMs,
      ) as Promise<string | null>,
    expire: (key, seconds) => within(redis.expire(key, seconds), timeoutMs),
    del: async (keys) => {
      // Of an install and a log-out at the same moment the install may be first: then its session ends, too.
      let count = 0;
      for (let left = [...keys]; left.length > 0; ) {
        const ended = await within(Promise.all(left.map((key) => endAtOnce(redis, key))), timeoutMs);
        count += ended.filter(({ wasThere }) => wasThere).length;
        left = ended.map(({ newer }) => newer).filter((key) => key !== undefined);
      }
      return count;
    },
    replace: async (replacement) => {
      // A person who was told that it could not be done must not lose their session afterwards.
      const deadline = await deadlineOf(redis, timeoutMs);
      const outcome = await within(replaceAtOnce(redis, replacement, deadline), timeoutMs);
      if (outcome === 'late') throw toldTooLate();
      return outcome === 'done';
    },
  };
}

/**
 * Whether a session was deleted in the last twenty minutes.
 *
 * @throws StoreUnavailableError
 */
export async function hasEnded(redis: Redis, key: string): Promise<boolean> {
  return (await within(redis.exists(endedName(key)))) === 1;
}

/**
 * Takes a name that only one caller may have, for `seconds`.
 *
 * @returns false when somebody has it already
 * @throws StoreUnavailableError: then it is not taken afterwards, either, unless it had been and the answer was lost
 */
export async function claimOnce(redis: Redis, name: string, seconds: number): Promise<boolean> {
  const deadline = await deadlineOf(redis, SESSION_STORE_TIMEOUT_MS);
  const outcome = await within(takeName(redis, name, randomUUID(), seconds * 1_000, deadline));
  if (outcome === 'late') throw toldTooLate();
  return outcome === 'taken';
}

/**
 * Until when, by Redis' clock, a command may run that somebody begins to wait for: it begins before the wait, and is over
 * before that is given up.
 */
async function deadlineOf(redis: Redis, timeoutMs: number): Promise<number> {
  return (await within(redisNow(redis), timeoutMs)) + timeoutMs - ANSWER_MS;
}

function toldTooLate(): StoreUnavailableError {
  return new StoreUnavailableError('Redis was told too late');
}
