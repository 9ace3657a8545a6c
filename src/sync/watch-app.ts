import type { Logger } from '../runtime/logging.ts';
import { watchHealth } from '../runtime/watch-health.ts';
import { watchStore } from '../store/watch-store.ts';

/** What keeps the whole app from copying, as this process saw it last. */
export interface AppWatch {
  /** For administrators, who cannot do anything about it: why is for the log, and for who is on call. */
  readonly notice: string | undefined;
  close(): void;
}

const HELP =
  'Those who run the app find the reason in its log, and what to do; mostly it goes on by itself when that is over.';
const DATABASE_NOTICE = `The app cannot write to its own database at the moment, so nothing new is copied. ${HELP}`;
const REDIS_NOTICE = `The app cannot work with its own queue (Redis) at the moment, so nothing new is copied. ${HELP}`;

/** Watches what all companies' copies depend on. @param checks throw what is wrong */
export function watchApp(
  checks: { database: () => Promise<void>; redis: () => Promise<void> },
  logger: Logger,
): AppWatch {
  const database = watchStore(checks.database, logger);
  // Its connections tell the log themselves.
  const redis = watchHealth(checks.redis);
  return {
    get notice() {
      if (!database.isWell) return DATABASE_NOTICE;
      return redis.isWell ? undefined : REDIS_NOTICE;
    },
    close() {
      database.close();
      redis.close();
    },
  };
}
