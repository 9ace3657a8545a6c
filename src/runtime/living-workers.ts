import { accessSync, constants, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode } from './error-code.ts';
import { isLocked } from './file-lock.ts';

/** How often it is looked, in milliseconds. */
const LOOK_EVERY_MS = 2_000;

/** Looks in a row that see no worker before it counts: one that is restarted is soon back. */
const LOOKS = 2;

/** Whether workers run, as this process saw it last. */
export interface WorkersWatch {
  /** How many run just now; undefined when that cannot be told. */
  count(): number | undefined;
  /** Whether none has run for some seconds. */
  readonly areMissing: boolean;
  close(): void;
}

/**
 * Looks every few seconds whether any worker process lives that works on this database.
 *
 * @param dir where workers hold their locks (src/runtime/presence.ts)
 */
export function watchWorkers(dir: string, everyMs = LOOK_EVERY_MS): WorkersWatch {
  let looksWithout = 0;
  const look = () => {
    looksWithout = countWorkers(dir) === 0 ? looksWithout + 1 : 0;
  };
  const timer = setInterval(look, everyMs).unref();
  return {
    count: () => countWorkers(dir),
    get areMissing() {
      return looksWithout >= LOOKS;
    },
    close: () => clearInterval(timer),
  };
}

/**
 * Counts the processes that hold a lock in the directory. It only reads: the files of the dead are for the next worker.
 *
 * @returns undefined when it cannot be told: a worker that cannot write there works without
 */
export function countWorkers(dir: string): number | undefined {
  try {
    const locks = readdirSync(dir).filter((file) => file.endsWith('.lock'));
    const living = locks.filter((file) => isLocked(join(dir, file))).length;
    if (living === 0) accessSync(dir, constants.W_OK);
    return living;
  } catch (error) {
    return hasCode(error, 'ENOENT') && canBeMade(dir) ? 0 : undefined;
  }
}

function canBeMade(dir: string): boolean {
  try {
    accessSync(dirname(dir), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
