import { isIPv6 } from 'node:net';
import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RLWrapperTimeouts,
} from 'rate-limiter-flexible';
import { WebError } from './web-error.ts';

/** A person is waiting: after so long a silent Redis counts as away, in milliseconds. */
const REDIS_TIMEOUT_MS = 1_000;

/** So many in so much time (whole seconds), counted from the first. */
export interface RateLimitRule {
  /** Stands in the keys in Redis. */
  name: string;
  max: number;
  windowMs: number;
}

/** A counter of all processes in Redis; while Redis is away, this process counts by itself. */
export function createCounter(redis: Redis, { name, max, windowMs }: RateLimitRule): RLWrapperTimeouts {
  const rule = { points: max, duration: windowMs / 1_000 };
  const keyPrefix = `limit:${name}`;
  const limiter = new RateLimiterRedis({
    ...rule,
    keyPrefix,
    storeClient: redis,
    rejectIfRedisNotReady: true,
  });
  const insuranceLimiter = new RateLimiterMemory(rule);
  return new RLWrapperTimeouts({ limiter, insuranceLimiter, timeoutMs: REDIS_TIMEOUT_MS });
}

/** The first 64 bits of an IPv6 address: its owner has all the addresses behind them. */
function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}

/** Limits tries. Without Redis each process has the limit for itself, and nobody is locked out. */
export class RateLimit {
  readonly #counter: RLWrapperTimeouts;

  constructor(redis: Redis, rule: RateLimitRule) {
    this.#counter = createCounter(redis, rule);
  }

  /**
   * Takes one try.
   *
   * @param address of the client; without it, everybody has one count
   * @throws WebError 429 that says when to try again, when there is none left
   */
  async take(address = 'all'): Promise<void> {
    try {
      await this.#counter.consume(networkOf(address));
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1_000));
      throw new WebError(429, 'Too many attempts', 'There were too many attempts in a short time.', {
        advice: `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
        retryAfterSeconds: seconds,
      });
    }
  }

  /** Gives tries back that were good ones. */
  async giveBack(address = 'all', tries = 1): Promise<void> {
    await this.#counter.reward(networkOf(address), tries);
  }
}
