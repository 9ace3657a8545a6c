import { type Kysely, sql } from 'kysely';

/** A month of history by days, and browsers that were signed out of a company. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table days (
    list bigint not null references lists (id) on delete cascade,
    day integer not null,
    runs integer not null,
    failed integer not null,
    created integer not null,
    changed integer not null,
    deleted integer not null,
    first_copy integer not null,
    primary key (list, day))`.execute(db);
  await sql`alter table runs add column is_first integer not null default 0`.execute(db);
  // Of older runs, the first one of a list if it has copied most of what it read.
  await sql`update runs set is_first = 1 where created * 2 > records and id in (
    select min(id) from runs where kind = 'full' group by list)`.execute(db);
  await sql`alter table access add column is_ended integer not null default 0`.execute(db);
}
