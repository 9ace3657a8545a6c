import { createHash } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from './error-code.ts';
import { withFileLock } from './file-lock.ts';
import { makeDirBeside } from './owner.ts';

function isOutOfFiles(error: unknown): boolean {
  return hasCode(error, 'EMFILE') || hasCode(error, 'ENFILE');
}

/** The directory of locks cannot be written; the message says what to do. */
export class FileLocksError extends Error {
  constructor(dir: string, cause: unknown) {
    const advice = isOutOfFiles(cause)
      ? 'this process has as many files open as it may: raise that limit (ulimit -n), and start it again'
      : 'see that its disk works and has room, and that the app’s user owns it';
    super(`The locks in ${dir} cannot be written: ${advice}.`, { cause });
    this.name = 'FileLocksError';
  }
}

/**
 * Locks among the processes of one machine, by name, each the lock of a file in a directory. The operating system frees
 * one when its holder dies, however it dies, and not before: neither time nor a Redis that forgets takes it away.
 *
 * The files are empty, and stay: whoever waits for a lock has its file open, and would not see that it was removed and
 * another one made in its place, and both would be held.
 */
export class FileLocks {
  readonly #dir: string;

  /** @param dir made when missing, for this user alone, see {@link makeDirBeside} */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Looks whether locks can be made.
   *
   * @throws FileLocksError when the directory cannot be written
   */
  async check(): Promise<void> {
    try {
      makeDirBeside(this.#dir);
      accessSync(this.#dir, constants.W_OK | constants.X_OK);
    } catch (error) {
      throw new FileLocksError(this.#dir, error);
    }
  }

  /**
   * Runs the work while holding the lock of this name; waits for it first.
   *
   * @param signal ends the waiting, not the work
   * @throws the signal's reason, what the work throws, or FileLocksError when the directory cannot be written
   */
  async hold<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    // Names may hold what no file's name can.
    const path = join(this.#dir, `${createHash('sha256').update(name).digest('hex')}.lock`);
    let isHeld = false;
    const begin = () => {
      isHeld = true;
      return work();
    };
    try {
      makeDirBeside(this.#dir);
      return await withFileLock(path, Number.POSITIVE_INFINITY, begin, { signal });
    } catch (error) {
      if (isHeld || (signal.aborted && error === signal.reason)) throw error;
      throw new FileLocksError(this.#dir, error);
    }
  }
}
