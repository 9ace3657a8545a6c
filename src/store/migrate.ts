import { existsSync, readdirSync } from 'node:fs';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { Database, StoreDialect } from './database.ts';
import * as initial from './migrations/0001-initial.ts';
import * as checks from './migrations/0002-checks.ts';
import * as deliveryProcess from './migrations/0003-delivery-process.ts';
import * as outbox from './migrations/0004-outbox.ts';
import * as manyCompanies from './migrations/0005-many-companies.ts';
import * as erasedStayAway from './migrations/0006-erased-stay-away.ts';
import * as days from './migrations/0007-days.ts';
import * as since from './migrations/0008-since.ts';
import type { Schema } from './schema.ts';

type Migrations = Record<string, Migration>;

/** A fork's own migrations: files that export `up(db)`, in the order of their names. */
const FORK_DIR = new URL('../integration/migrations/', import.meta.url);

/** The app's migrations, and a fork's after them. Each set has a table of its own. */
async function loadSets(dialect: StoreDialect): Promise<{ table: string; migrations: Migrations }[]> {
  const ours = {
    '0001-initial': { up: (db: Kysely<unknown>) => initial.up(db, dialect) },
    '0002-checks': checks,
    '0003-delivery-process': deliveryProcess,
    '0004-outbox': { up: (db: Kysely<unknown>) => outbox.up(db, dialect) },
    '0005-many-companies': { up: (db: Kysely<unknown>) => manyCompanies.up(db, dialect) },
    '0006-erased-stay-away': { up: (db: Kysely<unknown>) => erasedStayAway.up(db, dialect) },
    '0007-days': days,
    '0008-since': since,
  };
  return [
    { table: 'kysely_migration', migrations: ours },
    { table: 'fork_migration', migrations: await loadForks() },
  ];
}

async function loadForks(): Promise<Migrations> {
  const files = existsSync(FORK_DIR) ? readdirSync(FORK_DIR).filter((file) => file.endsWith('.ts')) : [];
  const loaded = files.sort().map(async (file) => {
    return [file.replace(/\.ts$/, ''), (await import(new URL(file, FORK_DIR).href)) as Migration] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}

/** The database's schema is not the one that this version works with. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}

/**
 * Brings the database to this version's schema, once, however many processes start at the same time.
 *
 * @throws SchemaError when a newer version of the app has changed it; the error of a migration that fails: then its set
 *   has changed nothing
 */
export async function migrate(db: Database): Promise<void> {
  if ((await findMissing(db)).length === 0) return;
  await db.dialect.exclusively(db, async (connection) => {
    // Another process may have been first.
    await findMissing(db, connection);
    const schema = await schemaOf(db);
    for (const { table, migrations } of await loadSets(db.dialect)) {
      if (Object.keys(migrations).length === 0) continue;
      const migrator = new Migrator({
        db: connection,
        provider: { getMigrations: async () => migrations },
        ...(schema !== undefined && { migrationTableSchema: schema }),
        migrationTableName: table,
        migrationLockTableName: `${table}_lock`,
      });
      const { error, results = [] } = await migrator.migrateToLatest();
      const failed = results.find(({ status }) => status === 'Error')?.migrationName;
      if (error === undefined) continue;
      if (failed === undefined) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`The migration ${failed} failed: ${reason}`, { cause: error });
    }
  });
}

/**
 * The schema with the app's tables, or where PostgreSQL makes them. Other applications of the database may use Kysely in
 * other schemas.
 */
async function schemaOf(db: Database): Promise<string | undefined> {
  if (db.dialect.name === 'sqlite') return undefined;
  const { rows } = await sql<{ schema: string | null }>`select coalesce(
    (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where pg_class.oid = to_regclass('rejected_records')),
    current_schema()) as schema`.execute(db);
  const [{ schema } = { schema: null }] = rows;
  if (schema !== null) return schema;
  throw new SchemaError(
    'The search_path of the database names no schema that exists: make one, or correct it.',
  );
}

/** @throws SchemaError unless the database has this version's schema */
export async function checkSchema(db: Database): Promise<void> {
  const missing = await findMissing(db);
  if (missing.length === 0) return;
  throw new SchemaError(
    `The database lacks migrations of this version (${missing.join(', ')}): run "npm run migrate" first. Nothing was done.`,
  );
}

/**
 * The migrations that the database lacks.
 *
 * @throws SchemaError when it has one that this version does not know
 */
async function findMissing(db: Database, connection: Kysely<Schema> = db): Promise<string[]> {
  const missing: string[] = [];
  const schema = await schemaOf(db);
  const tables = await connection.introspection.getTables({ withInternalKyselyTables: true });
  const own = new Set(tables.filter((table) => table.schema === schema).map(({ name }) => name));
  for (const { table, migrations } of await loadSets(db.dialect)) {
    const known = Object.keys(migrations);
    const done = own.has(table)
      ? (await sql<{ name: string }>`select name from ${sql.table(table)}`.execute(connection)).rows
      : [];
    const names = new Set(done.map(({ name }) => name));
    const unknown = [...names].filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      throw new SchemaError(
        `The database was changed by a newer version of this app (${unknown.join(', ')}), which this version does not know. ` +
          'Nothing was done. Start the newer version, or restore a backup from before the change: see docs/deploy.md.',
      );
    }
    missing.push(...known.filter((name) => !names.has(name)));
  }
  return missing;
}
