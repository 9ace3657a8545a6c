import { type Kysely, sql } from 'kysely';

/** Records that the own logic may know otherwise than the copy: see `in-doubt.ts`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table in_doubt (
    list integer not null,
    id text not null,
    is_known integer not null,
    primary key (list, id)) without rowid`.execute(db);
}
