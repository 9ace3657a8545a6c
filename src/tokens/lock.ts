import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';

/** How often a waiting process looks whether the lock is free, in milliseconds. */
const POLL_MS = 50;

/** How long a lock outlives its holder's process, in milliseconds: a living holder goes on renewing it. */
const LEASE_MS = 5_000;

/** Renewals in the time of a lease: one that comes late or gets lost does no harm. */
const RENEWALS = 3;

// Only the owner renews and releases: a holder that outlived its lock must not touch another's.
const RENEW = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** A lock among processes. It only keeps work from being done twice: what must not happen is kept out by the store's version check. */
export class RedisLock {
  readonly #redis: Redis;
  readonly #leaseMs: number;

  /** @param leaseMs how long a lock outlives its holder's process, in milliseconds */
  constructor(redis: Redis, leaseMs = LEASE_MS) {
    this.#redis = redis;
    this.#leaseMs = leaseMs;
  }

  /**
   * Runs the work while holding the lock; waits for it first, as long as another's hold can last.
   *
   * @param holdMs how long the lock is kept at most while the work goes on, in milliseconds
   * @param signal ends the waiting, not the work
   * @throws Error when the lock does not come free in twice that time; or the signal's reason
   */
  async hold<T>(key: string, holdMs: number, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const owner = randomUUID();
    const leaseMs = Math.min(this.#leaseMs, holdMs);
    const giveUpAt = performance.now() + 2 * holdMs;
    while ((await this.#redis.set(key, owner, 'PX', leaseMs, 'NX')) !== 'OK') {
      if (performance.now() > giveUpAt) throw new Error(`The lock ${key} did not come free.`);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      signal?.throwIfAborted();
    }
    const endRenewals = this.#renew(key, owner, leaseMs, holdMs);
    try {
      return await work();
    } finally {
      endRenewals();
      // What the work has brought stands, whether or not Redis hears of its end: the lock ends by itself.
      await this.#redis.eval(RELEASE, 1, key, owner).catch(() => undefined);
    }
  }

  /** Keeps the lock alive until its time is over. @returns a function that ends it before */
  #renew(key: string, owner: string, leaseMs: number, holdMs: number): () => void {
    const endsAt = performance.now() + holdMs;
    const timer = setInterval(() => {
      const leftMs = Math.floor(Math.min(leaseMs, endsAt - performance.now()));
      if (leftMs <= 0) return clearInterval(timer);
      // What cannot be renewed ends early, and others may begin: the store's version check is made for that.
      this.#redis.eval(RENEW, 1, key, owner, leftMs).catch(() => undefined);
    }, leaseMs / RENEWALS).unref();
    return () => clearInterval(timer);
  }
}
