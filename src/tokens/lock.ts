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
// Where an answer gets lost with its connection, the command is sent once more, and meets its own name.
const TAKE = `local owner = redis.call('GET', KEYS[1])
if owner then return owner == ARGV[1] and 1 or 0 end
local now = redis.call('TIME')
if now[1] * 1000 + now[2] / 1000 > tonumber(ARGV[3]) then return -1 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/**
 * Takes a name that only one may have at a time.
 *
 * @param owner unlike that of anybody else
 * @param ms how long it is kept
 * @param deadline by Redis' own clock, in milliseconds since 1970: later it is not taken
 * @returns what became of it; it is not free when somebody else has it
 */
export async function takeName(
  redis: Redis,
  name: string,
  owner: string,
  ms: number,
  deadline = Number.MAX_SAFE_INTEGER,
): Promise<'taken' | 'late' | 'not free'> {
  const answer = await redis.eval(TAKE, 1, name, owner, ms, deadline);
  if (answer === 1) return 'taken';
  return answer === -1 ? 'late' : 'not free';
}

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
    const release = () => this.#redis.eval(RELEASE, 1, key, owner).catch(() => undefined);
    const take = () =>
      takeName(this.#redis, key, owner, leaseMs).catch((error: unknown) => {
        // Redis may give it all the same, when it can: to somebody who has gone, and whom others would wait for.
        void release();
        throw error;
      });
    while ((await take()) !== 'taken') {
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
      await release();
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
