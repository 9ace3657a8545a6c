import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';

/** How often a waiting process looks whether the lock is free, in milliseconds. */
const POLL_MS = 50;

// Only the owner releases: a holder that outlived its lock must not free another's.
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** A lock among processes. It only keeps work from being done twice: what must not happen is kept out by the store's version check. */
export class RedisLock {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Runs the work while holding the lock; waits for it first, as long as another's hold can last.
   *
   * @param holdMs how long the lock lives if its holder dies, in milliseconds
   * @throws Error when the lock does not come free in twice that time
   */
  async hold<T>(key: string, holdMs: number, work: () => Promise<T>): Promise<T> {
    const owner = randomUUID();
    const giveUpAt = performance.now() + 2 * holdMs;
    while ((await this.#redis.set(key, owner, 'PX', holdMs, 'NX')) !== 'OK') {
      if (performance.now() > giveUpAt) throw new Error(`The lock ${key} did not come free.`);
      await sleep(POLL_MS);
    }
    try {
      return await work();
    } finally {
      // What the work has brought stands, whether or not Redis hears of its end: the lock ends by itself.
      await this.#redis.eval(RELEASE, 1, key, owner).catch(() => undefined);
    }
  }
}
