import type { Logger } from '../runtime/logging.ts';
import { NewerSchemaError } from './newer-schema.ts';

/** How often it is tried, in milliseconds. */
const LOOK_EVERY_MS = 5_000;

/** Whether the database takes what the app writes, as this process saw it last. */
export interface StoreWatch {
  readonly isWell: boolean;
  close(): void;
}

/**
 * Looks every few seconds whether the database can be written, and tells the log when that changes: once, not with
 * every job that fails of it.
 *
 * @param check throws what is wrong, and what to do
 */
export function watchStore(check: () => Promise<void>, logger: Logger): StoreWatch {
  let isWell = true;
  let isLooking = false;
  const look = async () => {
    // One that takes longer than the pause is not overtaken.
    if (isLooking) return;
    isLooking = true;
    try {
      await check();
      if (!isWell) logger.info('the database can be written again');
      isWell = true;
    } catch (error) {
      // This process ends then, and says so itself.
      if (error instanceof NewerSchemaError) return;
      if (isWell) logger.error({ err: error }, 'the database cannot be written, trying on');
      isWell = false;
    } finally {
      isLooking = false;
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    get isWell() {
      return isWell;
    },
    close: () => clearInterval(timer),
  };
}
