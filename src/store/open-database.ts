import { existsSync, statSync } from 'node:fs';
import { Database, StoreError } from './database.ts';
import { openPostgres } from './dialect/postgres.ts';
import { openSqlite, pathOf } from './dialect/sqlite.ts';
import { checkSchema, migrate, SchemaError } from './migrate.ts';

/** Whether a URL names a file of SQLite. */
function isFileUrl(url: string): boolean {
  return url.startsWith('file:');
}

/**
 * Opens the database of a `file:` or `postgres:` URL; a SQLite file that is not there is made.
 *
 * @param options.migrates whether its schema is brought up to date; else another schema is refused
 * @param options.onError told of connections that break while nobody uses them
 * @throws StoreError, SchemaError
 */
export async function openDatabase(
  url: string,
  { migrates = true, onError = () => {} }: { migrates?: boolean; onError?: (error: Error) => void } = {},
): Promise<Database> {
  const db = new Database(isFileUrl(url) ? openSqlite(url) : openPostgres(url, onError));
  try {
    await (migrates ? migrate(db) : checkSchema(db));
    await db.check();
    return db;
  } catch (error) {
    await db.destroy();
    if (error instanceof StoreError || error instanceof SchemaError) throw error;
    const message = `The database of DATABASE_URL cannot be opened: ${(error as Error).message}`;
    throw new Error(message, { cause: error });
  }
}

/**
 * Opens a database for a command that is about what is in it.
 *
 * @throws Error when there is none: none is made
 */
export async function openExistingDatabase(url: string): Promise<Database> {
  if (isFileUrl(url)) {
    const path = pathOf(url);
    if (!existsSync(path) || statSync(path).size === 0) {
      throw new Error(`There is no database in ${path}: see DATABASE_URL. Nothing was done.`);
    }
  }
  return openDatabase(url, { migrates: false });
}
