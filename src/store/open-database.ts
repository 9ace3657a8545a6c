import { resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { BUSY_TIMEOUT_MS, Database } from './database.ts';
import { checkOwnDatabase, pathOf } from './existing-file.ts';
import { logAhead } from './log-ahead.ts';
import { findSchema, migrate } from './migrate.ts';
import { OwnFile } from './own-file.ts';
import { prepareFile } from './private-file.ts';
import { explainTrouble } from './trouble.ts';

/**
 * How much of the wait for another process's write is SQLite's own, in milliseconds, which keeps the thread: on the event
 * loop next to nothing, as everything there is tried again.
 */
const KEEPS_THREAD_MS = { eventLoop: 20, ofItsOwn: BUSY_TIMEOUT_MS } as const;

/**
 * After so many pages of 4 KB whoever commits copies the log into the database, and waits for the disk meanwhile, for a
 * quarter of a second. A thread copies it before, see {@link Database.copyLog}: so it comes to that only where there is
 * none, or it does not keep up.
 */
const CHECKPOINT_PAGES = 128_000;

/** Of a connection whose commits copy nothing. */
const NEVER = 0;

/** What goes on while a database is opened. */
export interface OpenOptions {
  /** Told from time to time how long another process that migrates it has been waited for, in milliseconds. */
  onWait?: (waitedMs: number) => void;
  /** Told when there was no database of the app, and this process has made one. */
  onNew?: () => void;
  /**
   * Looks at a database of an older version, as it is, before it is migrated, which ends the processes of that version:
   * throws when this one could not take their place.
   */
  beforeMigration?: (db: Database) => Promise<unknown>;
}

/**
 * Opens (and creates) the SQLite file of a `file:` URL and brings its schema up to date.
 *
 * Write-ahead logging, so that the dashboard reads while a page is written. With `synchronous=NORMAL` a loss of power
 * may take the last pages, records and cursor together, and they are read again; what must not be lost (a refresh
 * token that the service has replaced) is written by {@link Database.durably}. A transaction that reads first and
 * writes later fails when another process wrote in between, however long it waits: so every transaction here takes the
 * write lock as it begins. What is deleted or replaced is overwritten in the file (`secure_delete`).
 *
 * @throws when the file cannot be opened or migrated, is mounted by itself, or has a further name
 */
export async function openDatabase(url: string, options: OpenOptions = {}): Promise<Database> {
  const path = pathOf(url);
  prepareFile(path);
  const db = await connect(path, CHECKPOINT_PAGES, KEEPS_THREAD_MS.eventLoop);
  try {
    if ((await findSchema(db)) === 'older') await options.beforeMigration?.(db);
    await migrate(db, options);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return db;
}

/**
 * Opens the SQLite file of a `file:` URL as {@link openDatabase} does, for a command that is about what is in it.
 *
 * @throws Error that says what to do when it is no database of this app, or one of an older version: none is made, and
 *   nothing is changed
 */
export async function openExistingDatabase(url: string): Promise<Database> {
  checkOwnDatabase(resolve(pathOf(url)));
  return openDatabase(url, {
    // It would end the processes of that version, whose place a command does not take.
    beforeMigration: () => {
      throw new Error(
        'The database is of an older version of the app, and this command migrates none. Start the app of this version first, then run this again. Nothing was changed.',
      );
    },
  });
}

/**
 * Opens the SQLite file of a `file:` URL once more, in a thread: each event loop has one connection of its own.
 *
 * @throws when there is no such file
 */
export function joinDatabase(url: string): Promise<Database> {
  return connect(pathOf(url), NEVER, KEEPS_THREAD_MS.ofItsOwn);
}

async function connect(path: string, checkpointPages: number, keepsThreadMs: number): Promise<Database> {
  try {
    const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS, fileMustExist: true });
    await logAhead(sqlite, BUSY_TIMEOUT_MS);
    sqlite.pragma('synchronous = NORMAL');
    sqlite.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma('secure_delete = ON');
    return new Database(sqlite, new OwnFile(path), keepsThreadMs);
  } catch (error) {
    throw explainTrouble(error);
  }
}
