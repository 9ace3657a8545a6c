import { isIPv6 } from 'node:net';
import type { Request } from 'express';
import type { Redis } from 'ioredis';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RLWrapperTimeouts,
} from 'rate-limiter-flexible';
import { WebError } from './web-error.ts';

/** A person waits: a Redis that is silent for so long counts as away. */
const REDIS_TIMEOUT_MS = 1_000;

/** How often open addresses may be tried in a minute. */
export interface WebLimits {
  /** Requests of one address that begin or end an install; those of an install that succeeds do not count. */
  installs: number;
  /** Wrong passwords of one address. */
  operator: number;
  /** Wrong passwords of all addresses together. */
  operatorInAll: number;
}

/** Far above what people do. */
export const WEB_LIMITS: WebLimits = { installs: 120, operator: 10, operatorInAll: 100 };
const LIMIT_WINDOW_SECONDS = 60;

/**
 * A counter that all processes share in Redis. While Redis is away, each process counts by itself.
 *
 * @param name part of the keys in Redis
 * @param max tries in a window that begins with the first
 */
export function createCounter(redis: Redis, name: string, max: number, seconds: number): RLWrapperTimeouts {
  const rule = { points: max, duration: seconds };
  const store = { keyPrefix: `limit:${name}`, storeClient: redis, rejectIfRedisNotReady: true };
  const limiter = new RateLimiterRedis({ ...rule, ...store });
  const insuranceLimiter = new RateLimiterMemory(rule);
  return new RLWrapperTimeouts({ limiter, insuranceLimiter, timeoutMs: REDIS_TIMEOUT_MS });
}

/**
 * The client's address, as far as trusted proxies tell it. Some proxies append the port, which differs each time.
 */
export function clientAddress(req: Request): string {
  const told = req.ip ?? '';
  const [, v4, v6] = /^(?:([\d.]+):\d+|\[([\da-f:.]+)\](?::\d+)?)$/i.exec(told) ?? [];
  return v4 ?? v6 ?? told;
}

/** The first 64 bits of an IPv6 address: one client owns all addresses below them. */
function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [left = [], right = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}

export class RateLimit {
  readonly #counter: RLWrapperTimeouts;

  constructor(redis: Redis, name: string, max: number) {
    this.#counter = createCounter(redis, name, max, LIMIT_WINDOW_SECONDS);
  }

  /**
   * Takes one try.
   *
   * @param address of the client; all clients share one count by default
   * @throws WebError 429 that says when to try again
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

  /** Returns tries that succeeded. */
  async giveBack(address = 'all', tries = 1): Promise<void> {
    await this.#counter.reward(networkOf(address), tries);
  }
}
