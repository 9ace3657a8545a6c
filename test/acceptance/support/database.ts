import { existsSync, readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { Client, types } from 'pg';
import { waitFor } from '../../support/wait-for.ts';

// Moments and counts are `bigint`, which pg gives as text.
types.setTypeParser(types.builtins.INT8, Number);

/** How long a test waits for another process's transaction, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000;

type Value = string | number | null;

/**
 * Runs a statement in the app's database, over a connection of its own.
 *
 * @param url as the app has it in DATABASE_URL
 * @param sql with its values as `$1`, `$2` …, each once and in this order
 */
export async function query<Row = Record<string, unknown>>(
  url: string,
  sql: string,
  values: readonly Value[] = [],
): Promise<Row[]> {
  if (!isFile(url)) return withClient(url, async (client) => (await client.query(sql, [...values])).rows);
  return withFile(url, (file) => {
    const statement = file.prepare(sql.replace(/\$\d+/g, '?'));
    if (statement.reader) return statement.all(...values) as Row[];
    statement.run(...values);
    return [];
  });
}

/** Locks the database as another program may: nobody else can write. @returns what unlocks it */
export async function lock(url: string): Promise<() => Promise<void>> {
  if (isFile(url)) {
    const file = new Sqlite(pathOf(url), { timeout: BUSY_TIMEOUT_MS });
    file.exec('begin immediate');
    return async () => void file.close();
  }
  const client = new Client(url);
  await client.connect();
  const tables = await client.query("select tablename from pg_tables where schemaname = 'public'");
  const names = tables.rows.map(({ tablename }) => `"${tablename}"`);
  // One table after the other: a transaction of the app may hold the next one, and wait for this one.
  const isLocked = async () => {
    await client.query(`rollback; begin; lock table ${names.join(', ')} in exclusive mode`);
    return true;
  };
  await waitFor(isLocked, 'the lock');
  return () => client.end();
}

/** Whether any process is in the middle of a transaction. */
export async function isBeingWritten(url: string): Promise<boolean> {
  if (!isFile(url)) {
    const others = `select 1 from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`;
    return (await query(url, others)).length > 0;
  }
  const file = new Sqlite(pathOf(url), { timeout: 0 });
  try {
    file.exec('begin immediate; rollback');
    return false;
  } catch {
    return true;
  } finally {
    file.close();
  }
}

/** All rows of all tables: a text, one row a line. */
export async function dump(url: string): Promise<string> {
  const tables = isFile(url)
    ? "select name from sqlite_master where type = 'table' and sql not like '%virtual%'"
    : "select tablename as name from pg_tables where schemaname = 'public'";
  const lines: string[] = [];
  for (const { name } of await query<{ name: string }>(url, tables)) {
    for (const row of await query(url, `select * from "${name}"`))
      lines.push(Object.values(row).map(shown).join('\t'));
  }
  return lines.join('\n');
}

/** The bytes of the database on the disk, as Latin-1. A server's files hold other databases, too: there it is the dump. */
export async function diskContents(url: string): Promise<string> {
  if (!isFile(url)) return dump(url);
  const files = [pathOf(url), `${pathOf(url)}-wal`].filter((path) => existsSync(path));
  return files.map((path) => readFileSync(path, 'latin1')).join('\n');
}

/** What migrations have made: their own rows, and the tables, indexes or columns. */
export async function readSchema(url: string): Promise<{ migrations: unknown[]; schema: unknown[] }> {
  const schema = isFile(url)
    ? 'select type, name, sql from sqlite_master order by name'
    : `select table_name, column_name, data_type from information_schema.columns
       where table_schema = 'public' order by table_name, column_name`;
  return {
    migrations: await query(url, 'select * from kysely_migration order by name'),
    schema: await query(url, schema),
  };
}

function isFile(url: string): boolean {
  return url.startsWith('file:');
}

function pathOf(url: string): string {
  return url.replace(/^file:/, '');
}

function shown(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('latin1') : String(value);
}

function withFile<Result>(url: string, work: (file: Sqlite.Database) => Result): Result {
  const file = new Sqlite(pathOf(url), { timeout: BUSY_TIMEOUT_MS });
  try {
    return work(file);
  } finally {
    file.close();
  }
}

async function withClient<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
