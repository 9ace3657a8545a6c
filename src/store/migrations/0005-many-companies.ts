import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** What ten thousand companies need. */
export async function up(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  // Of removed lists, too, which lists_key leaves out.
  await sql`create index lists_instance on lists (instance_id)`.execute(db);
  // Few have failed: to find them must not read the runs of all.
  await sql`create index runs_failed on runs (list, id) where state = 'failed'`.execute(db);
  if (dialect.name !== 'postgres') return;
  // All runs begin and end within minutes: with the usual fifth of the table, the planner goes by numbers of hours ago.
  for (const table of ['runs', 'lists']) {
    await sql`alter table ${sql.table(table)} set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_analyze_scale_factor = 0.02)`.execute(db);
  }
}
