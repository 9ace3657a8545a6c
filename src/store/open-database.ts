import { statSync } from 'node:fs';
import { Database, StoreError } from './database.ts';
import { openPostgres } from './dialect/postgres.ts';
import { openSqlite, pathOf } from './dialect/sqlite.ts';
import { checkSchema, migrate, SchemaError } from './migrate.ts';

/** How long a start tries to write while other processes do, in milliseconds. */
const START_PATIENCE_MS = 10_000;

interface OpenOptions {
  migrates?: boolean;
  onError?: (error: Error) => void;
  statementsMs?: number | undefined;
  connections?: number | undefined;
}

/** Whether a URL names a file of SQLite. */
export function isFileUrl(url: string): boolean {
  return url.startsWith('file:');
}

/**
 * Opens the database of a `file:` or `postgres:` URL. It makes a SQLite file that is not there.
 *
 * @param options.migrates brings the schema up to date; without it, another schema is refused
 * @param options.onError called with errors of idle connections
 * @param options.statementsMs ends longer statements, in a process in which handlers run
 * @param options.connections at most, of a PostgreSQL database
 * @throws StoreError, SchemaError
 */
export async function openDatabase(
  url: string,
  { migrates = true, onError = () => {}, statementsMs, connections }: OpenOptions = {},
): Promise<Database> {
  const dialect = isFileUrl(url)
    ? openSqlite(url, statementsMs !== undefined)
    : openPostgres(url, onError, { statementsMs, connections });
  const db = new Database(dialect);
  try {
    await db.dialect.refuseUnfit?.(db);
    await (migrates ? migrate(db) : checkSchema(db));
    // Others may be starting, too.
    await db.check(START_PATIENCE_MS);
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

/** Keeps a fact about the whole database, unless there is one of this name. @returns the value that stands */
export function keepSetting(db: Database, name: string, value: string): Promise<string> {
  return db.durably(async (tx) => {
    const fresh = tx.insertInto('settings').values({ name, value });
    await fresh.onConflict((conflict) => conflict.doNothing()).execute();
    const kept = tx.selectFrom('settings').select('value').where('name', '=', name);
    return (await kept.executeTakeFirstOrThrow()).value;
  });
}
