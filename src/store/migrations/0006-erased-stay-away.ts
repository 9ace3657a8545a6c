import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** Hashes of erased records outlive the copy of their company. And a company's name is asked for again. */
export async function up(db: Kysely<unknown>, { narrowTable }: StoreDialect): Promise<void> {
  await sql`create table tombstones (hash text primary key) ${narrowTable}`.execute(db);
  // A disconnect that deletes the copy looks for them.
  await sql`create index records_erased on records (list) where erased_at is not null`.execute(db);
  await sql`alter table lists add column has_tombstones integer not null default 0`.execute(db);
  await sql`alter table instances add column named_at bigint not null default 0`.execute(db);
}
