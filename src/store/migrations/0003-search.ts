import { type Kysely, sql } from 'kysely';

/** How many records of a list a row of the queue has. */
const PORTION = 100;

/**
 * Full-text search. The index keeps no texts of its own; its rows go by `records.seq`. Records that are not in it yet
 * stand in the queue: at first, all of them. And what is under way is found without looking at every run.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // The words come folded and told apart already (search-words.ts): the tokenizer only splits at spaces.
  await sql`create virtual table search using fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii')`.execute(db);
  // Its parts are merged little by little by whoever writes it (search-index.ts), never many at once.
  await sql`insert into search (search, rank) values ('automerge', 0), ('crisismerge', 1000)`.execute(db);
  await sql`create table search_queue (
    place integer primary key,
    instance_id text not null,
    resource text not null,
    seqs text not null,
    count integer not null)`.execute(db);
  await sql`create table removals (instance_id text primary key) without rowid`.execute(db);
  await sql`create index search_queue_list on search_queue (instance_id, resource, count)`.execute(db);
  await sql`create index runs_state on runs (state)`.execute(db);
  await sql`
    insert into search_queue (instance_id, resource, seqs, count)
    select instance_id, resource, json_group_array(seq), count(*) from (
      select instance_id, resource, seq,
        (row_number() over (partition by instance_id, resource order by seq) - 1) / ${PORTION} as portion
      from records where deleted_at is null)
    group by instance_id, resource, portion`.execute(db);
}
