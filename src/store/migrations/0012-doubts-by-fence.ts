import { type Kysely, sql } from 'kysely';

/** Whose telling a note of a record in doubt belongs to: notes from before are of nobody who tells now. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table noted (
    list integer not null,
    id text not null,
    fence integer not null,
    is_known integer not null,
    primary key (list, id, fence)) without rowid`.execute(db);
  await sql`insert into noted (list, id, fence, is_known) select list, id, 0, is_known from in_doubt`.execute(
    db,
  );
  await sql`drop table in_doubt`.execute(db);
  await sql`alter table noted rename to in_doubt`.execute(db);
}
