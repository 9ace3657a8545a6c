import { statSync } from 'node:fs';
import { Database, StoreError } from './database.ts';
import { openPostgres } from './dialect/postgres.ts';
import { openSqlite, pathOf } from './dialect/sqlite.ts';
import { checkSchema, migrate, SchemaError } from './migrate.ts';

/** Whether a URL names a file of SQLite. */
export function isFileUrl(url: string): boolean {
  return url.startsWith('file:');
}

/**
 * Opens the database of a `file:` or `postgres:` URL. It makes a SQLite file that is not there.
 *
 * @param options.migrates brings the schema up to date; without it, another schema is refused
 * @param options.onError called with errors of idle connections
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

/** The path of a SQLite database. @throws Error when there is none */
export function existingFile(url: string): string {
  const path = pathOf(url);
  if (statSync(path, { throwIfNoEntry: false })?.size) return path;
  throw new Error(`There is no database in ${path}: see DATABASE_URL. Nothing was done.`);
}

/** Opens a database for a command that needs its data. @throws Error when there is none: it makes no file */
export async function openExistingDatabase(url: string): Promise<Database> {
  if (isFileUrl(url)) existingFile(url);
  return openDatabase(url, { migrates: false });
}
