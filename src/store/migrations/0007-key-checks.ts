import { type Kysely, sql } from 'kysely';

/**
 * Which key an id stands for, so that another one under the same id is told from tokens that were changed. It is filled
 * by the processes that have the keys: see `tokens/key-checks.ts`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table key_checks (
    key_id text primary key,
    check_value text not null) without rowid`.execute(db);
}
