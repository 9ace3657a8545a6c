import { type Kysely, sql } from 'kysely';

/** Deliveries that have not ended, and dead letters that are tried again by themselves. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}

const STATEMENTS = [
  sql`alter table consumers add column begun_at bigint`,
  sql`alter table consumers add column begun_to bigint`,
  sql`alter table dead_letters add column retry_at bigint`,
  sql`alter table dead_letters add column retry_until bigint not null default 0`,
  sql`alter table dead_letters add column is_retried integer not null default 0`,
  // Those of today are tried once more.
  sql`update dead_letters set retry_at = 0`,
];
