import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import * as initial from '../../src/store/migrations/0001-initial.ts';

/** A record as the first schema kept it; generation 1 was seen by the run before, 2 by the one under way. */
export interface OldRecord {
  id: string;
  document: string;
  generation: 1 | 2;
  deletedAt?: number;
}

/**
 * Makes a database file of the first schema, as the first version of the app left it: one instance, whose second run
 * of contacts stopped after its first page.
 */
export async function makeFirstSchema(path: string, records: readonly OldRecord[]): Promise<void> {
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: new Sqlite(path) }) });
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ '0001-initial': initial }) },
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  await sql`begin`.execute(db);
  await sql`insert into instances values ('ins_1', 'cmp_1', 'Kept', 'active', null, 1)`.execute(db);
  for (const [resource, state, cursor] of [
    ['contacts', 'waiting', 'https://x.example/p2'],
    ['conversations', 'idle', null],
  ]) {
    await sql`
      insert into runs (instance_id, resource, state, phase, generation, fence, cursor, pages, records, skipped,
        deleted, attempt)
      values ('ins_1', ${resource}, ${state}, 'pages', 2, 4, ${cursor}, 1, 3, 0, 0, 0)`.execute(db);
    for (const { id, document, generation, deletedAt } of records) {
      await sql`
        insert into records (instance_id, resource, id, document, generation, updated_at, deleted_at)
        values ('ins_1', ${resource}, ${id}, ${document}, ${generation}, 7, ${deletedAt ?? null})`.execute(
        db,
      );
    }
  }
  await sql`commit`.execute(db);
  await db.destroy();
}
