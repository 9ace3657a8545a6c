import { RedisStore } from 'connect-redis';
import type { SessionData, Store } from 'express-session';

type Callback = (error?: unknown) => void;

/**
 * Sessions in Redis that are written where that is asked for, and nowhere else. The middleware saves by itself what a
 * request has read, when it is answered; another tab may have changed the session since, so that it only lives on then.
 */
export class WrittenSessions extends RedisStore {
  /** What the middleware calls: the session is there for longer, as it is by now. */
  override set(id: string, data: SessionData, done?: Callback): Promise<unknown> {
    return this.touch(id, data, done);
  }

  /**
   * Writes the session, unless it has ended.
   *
   * @throws StoreUnavailableError
   */
  async write(id: string, data: SessionData): Promise<void> {
    await super.set(id, data);
  }
}

/** @throws Error when the sessions are kept elsewhere */
export function writtenSessions(store: Store): WrittenSessions {
  if (store instanceof WrittenSessions) return store;
  throw new Error('These sessions are written by every answer.');
}
