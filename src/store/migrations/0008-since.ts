import { type Kysely, sql } from 'kysely';

/** Since when an instance is in its state; 0 where an older version set it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column status_since bigint not null default 0`.execute(db);
}
