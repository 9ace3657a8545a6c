import { statfs } from 'node:fs/promises';
import Sqlite from 'better-sqlite3';
import { explainTrouble } from './trouble.ts';

const MEGABYTE = 1_024 * 1_024;

/** A page of a hundred records of usual size, or a grant, takes a part of this, with what the search index adds. */
const LEAST_MB = 4;

/** Where there was less, so much is wanted: what others write and delete does not change the verdict all the time. */
const LEAST_AGAIN_MB = 2 * LEAST_MB;

/**
 * The room on the file system of a database. That a small write succeeds tells nothing of it: there may be a place for
 * that in the log, which is as large as it once was.
 */
export class Room {
  readonly #path: string;
  #isShort = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws Error as SQLite has it for a full disk, which says what to do */
  async check(): Promise<void> {
    const leastMb = this.#isShort ? LEAST_AGAIN_MB : LEAST_MB;
    this.#isShort = (await freeBytes(this.#path)) < leastMb * MEGABYTE;
    if (!this.#isShort) return;
    throw explainTrouble(new Sqlite.SqliteError(`less than ${leastMb} MB are free`, 'SQLITE_FULL'));
  }
}

/** How much this process may still write; without an end where the file system does not tell. */
async function freeBytes(path: string): Promise<number> {
  try {
    const { blocks, bsize, bavail, bfree } = await statfs(path);
    // Some have no blocks at all, as those that others serve over a network.
    if (blocks === 0) return Number.POSITIVE_INFINITY;
    // A part is kept for root on many.
    return bsize * (process.geteuid?.() === 0 ? bfree : bavail);
  } catch {
    return Number.POSITIVE_INFINITY; // Whoever writes is told what is wrong.
  }
}
