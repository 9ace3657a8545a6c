import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FileLockTimeoutError, withFileLock } from './file-lock.ts';

const ENTER_LIMIT_MS = 1_000;

/** Other files in the directory are those that SQLite puts beside a lock. */
const LOCK = '.lock';

/**
 * Tells the living processes of a directory from the dead: each holds the lock of a file there, named after it, from
 * its beginning to its end. The operating system frees the lock when its holder dies, however it dies, and not before:
 * nobody alive is taken for dead because it was slow, because another has its process id now, or because it runs in
 * another container. Who does not see the directory is told nothing.
 */
export class Presence {
  readonly #dir: string;
  readonly #left = Promise.withResolvers<void>();
  #held: Promise<void> = Promise.resolve();
  /** Names this process, like no other one before or after it. */
  readonly id: string;

  constructor(dir: string, id: string) {
    this.#dir = dir;
    this.id = id;
  }

  /**
   * Counts as alive from now on.
   *
   * @throws when the directory cannot be written
   */
  async enter(): Promise<void> {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const entered = Promise.withResolvers<void>();
    this.#held = this.#hold(entered.resolve).catch(entered.reject);
    await entered.promise;
  }

  /** Leaves in order: nobody has to clear up. */
  leave(): Promise<void> {
    this.#left.resolve();
    return this.#held;
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
      try {
        await withFileLock(path, 0, async () => {
          await takeOver(id);
          rmSync(path, { force: true });
        });
      } catch (error) {
        // It lives, or another process is about to clear up.
        if (!(error instanceof FileLockTimeoutError)) throw error;
      }
    }
  }

  async #hold(onHeld: () => void): Promise<void> {
    const path = join(this.#dir, this.id + LOCK);
    for (let isHeld = false; !isHeld; ) {
      await withFileLock(path, ENTER_LIMIT_MS, async () => {
        // Between its making and its lock the file may have been removed, as that of a dead process.
        isHeld = existsSync(path);
        if (!isHeld) return;
        onHeld();
        await this.#left.promise;
        rmSync(path, { force: true });
      });
    }
  }
}
