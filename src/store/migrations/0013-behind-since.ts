import { type Kysely, sql } from 'kysely';

/** Since when a list is under way without having come to its end. Of runs before, the last start is all that is known. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table runs add column behind_since bigint`.execute(db);
  await sql`update runs set behind_since = coalesce(started_at, finished_at) where state <> 'idle'`.execute(
    db,
  );
}
