import { RedisStore } from 'connect-redis';
import type { SessionData, Store } from 'express-session';
import type { SessionClient } from './redis-session-client.ts';
import type { SessionReplacement } from './session-replacement.ts';

interface WrittenSessionsOptions {
  client: SessionClient;
  prefix: string;
  /** How long a session lives, in seconds. */
  ttl: (data: SessionData) => number;
}

type Callback = (error?: unknown) => void;

/**
 * Sessions in Redis that are written where that is asked for, and nowhere else. The middleware saves by itself what a
 * request has read, when it is answered; another tab may have changed the session since, so that it only lives on then.
 */
export class WrittenSessions extends RedisStore {
  readonly #options: WrittenSessionsOptions;

  constructor(options: WrittenSessionsOptions) {
    super(options);
    this.#options = options;
  }

  /** What the middleware calls: the session is there for longer, as it is by now. */
  override set(id: string, data: SessionData, done?: Callback): Promise<unknown> {
    return this.touch(id, data, done);
  }

  /**
   * Has the session live on from now. The middleware asks for it at the end of every answer, where an error could only
   * break the connection of an answer that is whole. Where Redis does not take it, the session ends as much sooner.
   */
  override async touch(id: string, data: SessionData, done?: Callback): Promise<void> {
    const { client, prefix, ttl } = this.#options;
    await client.expire(prefix + id, ttl(data)).catch(() => undefined);
    done?.();
  }

  /**
   * Writes the session, unless it has ended.
   *
   * @throws StoreUnavailableError
   */
  async write(id: string, data: SessionData): Promise<void> {
    await super.set(id, data);
  }

  /**
   * Ends the session, and one that an install has put in its place.
   *
   * @returns false when there was neither
   * @throws StoreUnavailableError
   */
  async end(id: string): Promise<boolean> {
    const { client, prefix } = this.#options;
    return (await client.del([prefix + id])) > 0;
  }

  /**
   * Writes a session in the place of one that ends, at once: a process that is killed between would have left the browser
   * none.
   *
   * @param ended the session that ends
   * @returns false when that has ended meanwhile: nothing is written then
   * @throws StoreUnavailableError; nothing is written from then on, but it may have been before, and the answer was lost
   */
  replace(
    ended: { id: string; isKept: boolean; logOutFollows: boolean },
    id: string,
    data: SessionData,
    pointer: SessionReplacement['pointer'],
  ): Promise<boolean> {
    const { client, prefix, ttl } = this.#options;
    return client.replace({
      endedKey: prefix + ended.id,
      isKept: ended.isKept,
      logOutFollows: ended.logOutFollows,
      key: prefix + id,
      value: JSON.stringify(data),
      seconds: ttl(data),
      pointer,
    });
  }
}

/** @throws Error when the sessions are kept elsewhere */
export function writtenSessions(store: Store): WrittenSessions {
  if (store instanceof WrittenSessions) return store;
  throw new Error('These sessions are written by every answer.');
}
