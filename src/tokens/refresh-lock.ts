import { ServiceError } from '../client/errors.ts';
import type { RedisLock } from './lock.ts';
import { LONGEST_REFRESH_MS } from './oauth-client.ts';

/** How long a refresh may hold its lock, in milliseconds: a token request, and then a write that waits for the database. */
export const LOCK_MS = LONGEST_REFRESH_MS + 6_000;

/** Locks among the processes of one machine, which end with their holder's process, and not before. */
export interface HostLocks {
  /**
   * Runs the work while holding the lock of this name; waits for it first.
   *
   * @param signal ends the waiting, not the work
   * @throws the signal's reason, or what the work throws
   */
  hold<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

const NOT_FREE = new ServiceError(
  'wait',
  'Another process of the app has been renewing the access token for long, and has not come to its end.',
);

/** The key in Redis of the lock of an instance's refreshes. */
function lockKey(instanceId: string): string {
  return `tokens:{${instanceId}}:lock`;
}

/**
 * The lock of a refresh. The one in Redis is waited for without a look at any file; but a Redis
 * that is emptied, restarted or replaced forgets it while the service is asked. Who would ask a second time with the same
 * refresh token then waits for the lock of this machine: a service may take that for theft, and end the grant. All
 * processes share one SQLite file, and so one machine.
 */
export class RefreshLock {
  readonly #parts: { lock: RedisLock; hostLocks: HostLocks };

  constructor(parts: { lock: RedisLock; hostLocks: HostLocks }) {
    this.#parts = parts;
  }

  /**
   * Runs the work while holding both locks of an instance; waits for them first.
   *
   * @param holdMs how long the work may take, in milliseconds: so long the second lock is waited for
   * @param signal ends the waiting, not the work
   * @throws ServiceError to wait when the second lock does not come free, Error when the first does not; the signal's
   *   reason; what the work throws
   */
  hold<T>(instanceId: string, holdMs: number, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { lock, hostLocks } = this.#parts;
    const holdBoth = () => {
      const time = new AbortController();
      const timer = setTimeout(() => time.abort(NOT_FREE), holdMs).unref();
      return hostLocks
        .hold(instanceId, work, AbortSignal.any([time.signal, signal]))
        .finally(() => clearTimeout(timer));
    };
    return lock.hold(lockKey(instanceId), holdMs, holdBoth, signal);
  }
}
