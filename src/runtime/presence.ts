import { accessSync, constants, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasCode } from './error-code.ts';
import { FileLockTimeoutError, isLocked, withFileLock } from './file-lock.ts';
import { makeDirBeside } from './owner.ts';

const ENTER_LIMIT_MS = 1_000;

/** Other files in the directory are no locks, or none yet. */
const LOCK = '.lock';

/** A file that is about to become a lock. */
const FRESH = '.fresh';

/**
 * Tells the living processes of a directory from the dead: each holds the lock of a file there, named after it, from
 * its beginning to its end. The operating system frees the lock when its holder dies, however it dies, and not before:
 * nobody alive is taken for dead because it was slow, because another has its process id now, or because it runs in
 * another container. Who does not see the directory is told nothing.
 */
export class Presence {
  readonly #dir: string;
  readonly #path: string;
  /** Of the file that is held; another one at its path is none of ours. */
  #inode: bigint | undefined;
  #left = Promise.withResolvers<void>();
  #held: Promise<void> = Promise.resolve();
  /** Names this process, like no other one before or after it. */
  readonly id: string;

  constructor(dir: string, id: string) {
    this.#dir = dir;
    this.#path = join(dir, id + LOCK);
    this.id = id;
  }

  /**
   * Counts as alive from now on. Once it does, this looks whether its file is still there, and makes it anew if not.
   *
   * @throws when the directory cannot be written
   */
  async enter(): Promise<void> {
    const inode = inodeOf(this.#path);
    if (inode !== undefined && inode === this.#inode) return;
    // Nobody sees any more what it holds, if it does.
    await this.leave();
    makeDirBeside(this.#dir);
    const entered = Promise.withResolvers<void>();
    this.#left = Promise.withResolvers();
    this.#held = this.#hold(entered.resolve).catch(entered.reject);
    await entered.promise;
  }

  /** Leaves in order: nobody has to clear up. */
  leave(): Promise<void> {
    this.#left.resolve();
    return this.#held;
  }

  /**
   * Whether another process of this directory is alive. A lock whose file has a further name tells nothing: the holder may
   * be of another directory, of which this one is a copy by hard links.
   */
  isAlive(id: string): boolean {
    const path = join(this.#dir, id + LOCK);
    return isLocked(path) && statSync(path, { throwIfNoEntry: false })?.nlink === 1;
  }

  /**
   * Hands over every process that died before it could leave, each to one caller of all processes. It is forgotten
   * then; when `takeOver` throws, it comes again.
   *
   * @throws what `takeOver` throws, or when the directory cannot be read
   */
  async forEachDead(takeOver: (id: string) => Promise<void>): Promise<void> {
    for (const file of readdirSync(this.#dir)) {
      const id = file.slice(0, -LOCK.length);
      if (!file.endsWith(LOCK) || id === this.id) continue;
      const path = join(this.#dir, file);
      const inode = inodeOf(path);
      if (inode === undefined) continue;
      const clearUp = async () => {
        // It may have entered again meanwhile, with another file.
        if (inodeOf(path) !== inode) return;
        await takeOver(id);
        rmSync(path, { force: true });
      };
      try {
        await withFileLock(path, 0, clearUp, { mustExist: true });
      } catch (error) {
        // It lives, or another process is about to clear up.
        if (!(error instanceof FileLockTimeoutError) && !wasAway(path, error)) throw error;
      }
    }
  }

  async #hold(onHeld: () => void): Promise<void> {
    // Nobody may find its file free, who would take it for dead: so it is locked before it has its name.
    const fresh = join(this.#dir, this.id + FRESH);
    await withFileLock(fresh, ENTER_LIMIT_MS, async () => {
      this.#inode = inodeOf(fresh);
      renameSync(fresh, this.#path);
      onHeld();
      await this.#left.promise;
      rmSync(this.#path, { force: true });
    });
  }
}

/** Whether a file could not be opened for want of it alone. By now it may be there again, even with the same inode. */
function wasAway(path: string, error: unknown): boolean {
  if (!hasCode(error, 'SQLITE_CANTOPEN')) return false;
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return statSync(path).isFile();
  } catch (reason) {
    return hasCode(reason, 'ENOENT');
  }
}

/** Tells a file from those that have, or had, its path; undefined where there is none. */
function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}
