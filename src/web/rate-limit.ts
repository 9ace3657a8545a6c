import { isIPv6 } from 'node:net';
import type { Redis } from 'ioredis';
import { StoreUnavailableError, WebError } from './web-error.ts';

/** A person is waiting: a page that says "try again" beats one that never comes. In milliseconds. */
const REDIS_TIMEOUT_MS = 2_000;

/** So many in so much time, counted from the first. */
export interface RateLimitRule {
  /** Stands in the keys in Redis. */
  name: string;
  max: number;
  windowMs: number;
}

// The first of a window starts its clock; what was refused does not prolong it.
const TAKE = `
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return {count, left}`;

const GIVE_BACK = `
local count = math.min(tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1]))
if count > 0 then redis.call('DECRBY', KEYS[1], count) end
return count`;

/**
 * Waits for an answer of Redis, which an unreachable one may keep in a queue for ever.
 *
 * @throws StoreUnavailableError when Redis fails or is slow
 */
export async function within<T>(answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error('Redis did not answer in time')), REDIS_TIMEOUT_MS);
  try {
    return await Promise.race([answer, late.promise]);
  } catch (cause) {
    throw new StoreUnavailableError('Redis cannot be reached', { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** The first 64 bits of an IPv6 address: its owner has all the addresses behind them. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...Array<string>(zeros).fill('0'), ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

/** Counts tries in Redis, so that several processes have one limit together. */
export class RateLimit {
  readonly #redis: Redis;
  readonly #rule: RateLimitRule;

  constructor(redis: Redis, rule: RateLimitRule) {
    this.#redis = redis;
    this.#rule = rule;
  }

  /**
   * Takes one try.
   *
   * @param address of the client; all of an IPv6 network of 64 bits count as one. Without it one count for everybody.
   * @throws WebError 429 that says when to try again, when there is none left
   * @throws StoreUnavailableError when Redis cannot count: nobody gets in uncounted
   */
  async take(address?: string): Promise<void> {
    const { max, windowMs } = this.#rule;
    const answer = await within(this.#redis.eval(TAKE, 1, this.#key(address), windowMs));
    const [count, leftMs] = answer as [number, number];
    if (count <= max) return;
    const seconds = Math.max(1, Math.ceil(leftMs / 1_000));
    throw new WebError(429, 'Too many attempts', 'There were too many attempts in a short time.', {
      advice: `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
      retryAfterSeconds: seconds,
    });
  }

  /** Gives tries back that were good ones, if Redis hears of it: what went well stands without. */
  async giveBack(address?: string, tries = 1): Promise<void> {
    await within(this.#redis.eval(GIVE_BACK, 1, this.#key(address), tries)).catch(() => undefined);
  }

  #key(address: string | undefined): string {
    return `limit:${this.#rule.name}:${address === undefined ? 'all' : networkOf(address)}`;
  }
}
