import { type Kysely, sql } from 'kysely';

/** Since when the own logic has held up the batch that comes next: what it may do is bounded in time, too. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table runs add column own_since bigint`.execute(db);
}
