import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { migrate } from './migrate.ts';
import type { Schema } from './schema.ts';

/** How long a write waits for another process's write, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000;

/** How soon what does not wait by itself is tried again, in milliseconds. */
const BUSY_PAUSE_MS = 20;

/** The database, typed. A transaction's first statement is a write: see {@link openDatabase}. */
export type Database = Kysely<Schema>;

/**
 * Opens (and creates) the SQLite file of a `file:` URL and brings its schema up to date.
 *
 * Write-ahead logging, so that the dashboard reads while a page is written; `synchronous=FULL`, as a refresh
 * token that the service has replaced must not be lost with the power. A transaction that reads first and writes
 * later fails at once when another process wrote in between, whatever the busy timeout: so every transaction
 * here begins with a write.
 *
 * @throws when the file cannot be opened or migrated
 */
export async function openDatabase(url: string): Promise<Database> {
  const path = url.replace(/^file:(\/\/(?=\/))?/, '');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Nobody else's to read; the files that SQLite puts beside it take after it.
  closeSync(openSync(path, 'a', 0o600));
  const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS });
  await logAhead(sqlite);
  sqlite.pragma('synchronous = FULL');
  sqlite.pragma('foreign_keys = ON');
  const db = new Kysely<Schema>({ dialect: new SqliteDialect({ database: sqlite }) });
  try {
    await migrate(db);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return db;
}

/** Processes that start together on a new file all switch it, and SQLite lets none wait for another here. */
async function logAhead(sqlite: Sqlite.Database): Promise<void> {
  const giveUpAt = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      sqlite.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      const isBusy = error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY');
      if (isBusy && performance.now() < giveUpAt) await sleep(BUSY_PAUSE_MS);
      else {
        sqlite.close();
        throw error;
      }
    }
  }
}
