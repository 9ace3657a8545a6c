import type { Logger } from '../runtime/logging.ts';
import { type HealthWatch, watchHealth } from '../runtime/watch-health.ts';
import { NewerSchemaError } from './newer-schema.ts';

/**
 * Looks every few seconds whether the database takes what the app writes, and tells the log when that changes: once, not
 * with every job that fails of it.
 *
 * @param check throws what is wrong, and what to do
 */
export function watchStore(check: () => Promise<void>, logger: Logger): HealthWatch {
  const checkUnlessReplaced = () =>
    check().catch((error: unknown) => {
      // This process ends then, and says so itself.
      if (!(error instanceof NewerSchemaError)) throw error;
    });
  return watchHealth(checkUnlessReplaced, {
    onTrouble: (err) => logger.error({ err }, 'the database cannot be written, trying on'),
    onWell: () => logger.info('the database can be written again'),
  });
}
