import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { isBusy } from './busy.ts';
import * as initial from './migrations/0001-initial.ts';
import { NewerSchemaError } from './newer-schema.ts';
import type { Schema } from './schema.ts';
import { hasTable } from './tables.ts';

/**
 * Every migration in its order; the names are kept in the database, so they never change. Forward only.
 *
 * Ours begin with four digits, those of a fork with `fork-`: a new database gets them after all of ours, one that has
 * them already gets our later ones behind them.
 */
const MIGRATIONS: Record<string, Migration> = {
  '0001-initial': initial,
};

/** How soon the write lock is tried again, in milliseconds. */
const LOCKED_PAUSE_MS = 50;

/** A wait for the write lock is told after so long, and then ever so often, in milliseconds. */
const WAIT_TOLD_MS = 1_000;
const WAIT_TOLD_AGAIN_MS = 5_000;

/** Whether this version of the app knows a migration, by its name. */
export function isKnownMigration(name: string): boolean {
  return Object.hasOwn(MIGRATIONS, name);
}

/**
 * Brings the database to the newest schema, once, however many processes start at the same time: the write lock is
 * taken first, and whoever comes second finds the work done. One that finds nothing to do does not ask for the lock.
 * Others wait for it as long as it takes: a migration of much data may need minutes.
 *
 * @param told.onWait from time to time, how long it has waited for another process, in milliseconds
 * @param told.onNew once it has made the schema of a database that had none
 * @throws NewerSchemaError when a newer version of the app has been here; the error of a migration that fails, and the
 *   database is then as it was before
 */
export async function migrate(
  db: Kysely<Schema>,
  { onWait, onNew }: { onWait?: (waitedMs: number) => void; onNew?: () => void } = {},
): Promise<void> {
  let isNew = false;
  await db.connection().execute(async (connection) => {
    if ((await findSchema(connection)) === 'current') return;
    await beginWriting(connection, onWait);
    try {
      // Whoever had the lock before may have been of a newer version.
      const found = await findSchema(connection);
      isNew = found === 'none';
      if (found !== 'current') await migrateToLatest(connection);
      await sql`commit`.execute(connection);
    } catch (error) {
      await sql`rollback`.execute(connection);
      throw error;
    }
  });
  if (isNew) onNew?.();
}

/**
 * Tells what is to be done about a database's schema: it is made, migrated, or left as it is.
 *
 * @throws NewerSchemaError
 */
export async function findSchema(db: Kysely<Schema>): Promise<'none' | 'older' | 'current'> {
  if (!(await hasTable(db, 'kysely_migration'))) return 'none';
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  const names = rows.map(({ name }) => name);
  const unknown = names.filter((name) => !isKnownMigration(name));
  if (unknown.length > 0) throw new NewerSchemaError(unknown);
  if (names.length === 0) return 'none';
  return names.length === Object.keys(MIGRATIONS).length ? 'current' : 'older';
}

async function migrateToLatest(db: Kysely<Schema>): Promise<void> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => MIGRATIONS },
    // Else a fork with migrations of its own could take over none of ours that came later.
    allowUnorderedMigrations: true,
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  const failed = results.find(({ status }) => status === 'Error')?.migrationName;
  if (error === undefined && failed === undefined) return;
  if (failed === undefined) throw error;
  const reason = error instanceof Error ? error.message : String(error);
  const message = `The migration ${failed} failed: ${reason}`;
  // What SQLite's own errors mean is told by their kind.
  throw error instanceof Sqlite.SqliteError
    ? Object.assign(error, { message })
    : new Error(message, { cause: error });
}

/** Takes the write lock. In between the event loop does other things, so that a signal can end the wait. */
async function beginWriting(
  db: Kysely<Schema>,
  onWait: (waitedMs: number) => void = () => {},
): Promise<void> {
  const { rows } = await sql<{ timeout: number }>`pragma busy_timeout`.execute(db);
  const startedAt = performance.now();
  let toldAt = WAIT_TOLD_MS;
  await sql`pragma busy_timeout = 0`.execute(db);
  try {
    for (;;) {
      try {
        await sql`begin immediate`.execute(db);
        return;
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
      const waitedMs = performance.now() - startedAt;
      if (waitedMs >= toldAt) {
        onWait(Math.round(waitedMs));
        toldAt = waitedMs + WAIT_TOLD_AGAIN_MS;
      }
      await sleep(LOCKED_PAUSE_MS);
    }
  } finally {
    await sql`pragma busy_timeout = ${sql.raw(String(rows[0]?.timeout ?? 0))}`.execute(db);
  }
}
