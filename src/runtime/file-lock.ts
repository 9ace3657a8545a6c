import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { giveToOwnerOfDir } from './owner.ts';

const POLL_MS = 20;

/** Of the locks that are held or waited for: one that nothing refers to would be closed as garbage, which frees its lock. */
const open = new Set<Database.Database>();

/** The lock was not free within the time allowed. */
export class FileLockTimeoutError extends Error {
  constructor(path: string, timeoutMs: number) {
    super(`Another process has held ${path} for more than ${timeoutMs} ms.`);
    this.name = 'FileLockTimeoutError';
  }
}

/**
 * Runs `action` while no other process (or other call in this one) holds the lock of this name.
 * The lock is SQLite's on an empty database, so the operating system frees it when its holder dies, however it dies.
 *
 * @param path of the lock's file, made when missing, and that of its directory's owner, which must be there
 * @param timeoutMs how long the lock is waited for, in milliseconds
 * @param options.mustExist a missing file is an error
 * @param options.signal ends the waiting, not the action
 * @throws FileLockTimeoutError, the signal's reason, or what `action` throws
 */
export async function withFileLock<Result>(
  path: string,
  timeoutMs: number,
  action: () => Promise<Result>,
  { mustExist = false, signal }: { mustExist?: boolean; signal?: AbortSignal } = {},
): Promise<Result> {
  const deadline = performance.now() + timeoutMs;
  const isNew = !existsSync(path);
  const database = new Database(path, { timeout: 0, fileMustExist: mustExist });
  open.add(database);
  try {
    if (isNew) giveToOwnerOfDir(path);
    while (!tryLock(database)) {
      if (performance.now() >= deadline) throw new FileLockTimeoutError(path, timeoutMs);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
      signal?.throwIfAborted();
    }
    return await action();
  } finally {
    database.close();
    open.delete(database);
  }
}

function tryLock(database: Database.Database): boolean {
  try {
    // A journal beside the file would keep the name that the file had then, and outlive a holder that dies.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return false;
    throw error;
  }
}
