import { type Kysely, sql } from 'kysely';

/** Waits that the service has asked for at the page that comes next, and since when a run is stuck at it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table runs add column waits integer not null default 0`.execute(db);
  await sql`alter table runs add column stuck_since bigint`.execute(db);
}
