import type { Redis } from 'ioredis';
import { StoreUnavailableError } from './web-error.ts';

/** A person is waiting: a page that says "try again" beats one that never comes. */
const SESSION_STORE_TIMEOUT_MS = 2_000;

/** The part of node-redis' client that connect-redis calls for one session. */
export interface SessionClient {
  get(key: string): Promise<string | null>;
  set(
    key: string,
    value: string,
    options?: { expiration: { type: 'EX'; value: number } },
  ): Promise<string | null>;
  expire(key: string, seconds: number): Promise<number>;
  del(keys: string[]): Promise<number>;
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
 * Only what express-session uses is there; listing all sessions is not.
 *
 * @throws StoreUnavailableError from every call when Redis fails or is slower than `timeoutMs`
 */
export function sessionClient(redis: Redis, timeoutMs = SESSION_STORE_TIMEOUT_MS): SessionClient {
  return {
    get: (key) => within(redis.get(key), timeoutMs),
    set: (key, value, options) =>
      within(
        options ? redis.set(key, value, 'EX', options.expiration.value) : redis.set(key, value),
        timeoutMs,
      ),
    expire: (key, seconds) => within(redis.expire(key, seconds), timeoutMs),
    del: (keys) => within(redis.del(...keys), timeoutMs),
  };
}

/**
 * Takes a name that only one caller may have, for `seconds`.
 *
 * @returns false when somebody has it already
 * @throws StoreUnavailableError
 */
export async function claimOnce(redis: Redis, name: string, seconds: number): Promise<boolean> {
  const answer = await within(redis.set(name, '1', 'EX', seconds, 'NX'));
  return answer === 'OK';
}
