import Sqlite from 'better-sqlite3';

/** Whether an error says that another connection has the database's lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY');
}
