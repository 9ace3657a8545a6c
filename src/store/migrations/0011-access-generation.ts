import { type Kysely, sql } from 'kysely';

/** How often the access of browsers to an instance has been ended: sessions from before are in the first generation. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column access_generation integer not null default 1`.execute(db);
}
