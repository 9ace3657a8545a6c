import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** What ten thousand companies need. */
export async function up(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  // Of removed lists, too, which lists_key leaves out.
  await sql`create index lists_instance on lists (instance_id)`.execute(db);
  if (dialect.name !== 'postgres') return;
  // All runs begin and end within minutes: with the usual fifth of the table, the planner goes by numbers of hours ago.
  for (const table of ['runs', 'lists']) {
    await sql`alter table ${sql.table(table)} set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_analyze_scale_factor = 0.02)`.execute(db);
  }
}
