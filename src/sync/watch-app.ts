import type { Logger } from '../runtime/logging.ts';
import { NewerSchemaError } from '../store/newer-schema.ts';
import { watchHealth } from './watch-health.ts';

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

/**
 * Watches what all companies' copies depend on, and tells the log when the database is in trouble, and when that is over:
 * once, not with every job that fails of it. Connections to Redis tell that themselves.
 *
 * @param checks throw what is wrong, and what to do
 */
export function watchApp(
  checks: { database: () => Promise<void>; redis: () => Promise<void> },
  logger: Logger,
): AppWatch {
  const checkDatabase = () =>
    checks.database().catch((error: unknown) => {
      // This process ends then, and says so itself.
      if (!(error instanceof NewerSchemaError)) throw error;
    });
  const database = watchHealth(checkDatabase, {
    onTrouble: (err) => logger.error({ err }, 'the database cannot be written, trying on'),
    onWell: () => logger.info('the database can be written again'),
  });
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
