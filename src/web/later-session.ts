import type { Redis } from 'ioredis';
import type { InstanceAccess } from './instance-access.ts';
import { within } from './redis-session-client.ts';
import { SESSION_PREFIX } from './session.ts';
import { newerKey } from './session-replacement.ts';

/** A session as time goes on: it, or the one that an install has put in its place. */
export class LaterSession {
  readonly #redis: Redis;
  #key: string | undefined;

  constructor(redis: Redis, sessionId: string) {
    this.#redis = redis;
    this.#key = SESSION_PREFIX + sessionId;
  }

  /**
   * What it sees by now. To be asked from time to time: what has taken its place is known for twenty minutes.
   *
   * @returns undefined when it has ended
   * @throws StoreUnavailableError
   */
  async read(): Promise<InstanceAccess | undefined> {
    while (this.#key !== undefined) {
      const value = await within(this.#redis.get(this.#key));
      if (value !== null) return JSON.parse(value) as InstanceAccess;
      this.#key = await within(newerKey(this.#redis, this.#key));
    }
    return undefined;
  }
}
