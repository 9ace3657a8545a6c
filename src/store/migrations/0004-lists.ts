import { type Kysely, sql } from 'kysely';

/**
 * A list, which is one resource of one instance, gets a short number: `runs.list`. Records, what a run has seen and the
 * queue of the search carry it in place of two texts of 40 characters, most of which was written with each record into
 * each index.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Never given twice, so that no list takes the records of one before it for its own.
  await sql`create table runs_anew (
    list integer primary key autoincrement,
    instance_id text not null references instances (id) on delete cascade,
    resource text not null,
    state text not null,
    phase text not null,
    fence integer not null,
    cursor text,
    pages integer not null,
    records integer not null,
    skipped integer not null,
    deleted integer not null,
    stored integer not null default 0,
    attempt integer not null,
    error text,
    waiting_until bigint,
    waiting_for text,
    started_at bigint,
    finished_at bigint,
    unique (instance_id, resource))`.execute(db);
  await sql`
    insert into runs_anew (instance_id, resource, state, phase, fence, cursor, pages, records, skipped, deleted, stored,
      attempt, error, waiting_until, waiting_for, started_at, finished_at)
    select instance_id, resource, state, phase, fence, cursor, pages, records, skipped, deleted, stored,
      attempt, error, waiting_until, waiting_for, started_at, finished_at
    from runs order by instance_id, resource`.execute(db);
  await sql`drop table runs`.execute(db);
  await sql`alter table runs_anew rename to runs`.execute(db);
  await sql`create index runs_state on runs (state)`.execute(db);

  // The index of the search goes by seq, which stays.
  await sql`create table records_anew (
    seq integer primary key,
    list integer not null,
    id text not null,
    hash text not null,
    updated_at bigint not null,
    deleted_at bigint,
    document text not null)`.execute(db);
  await sql`
    insert into records_anew (seq, list, id, hash, updated_at, deleted_at, document)
    select seq, list, id, hash, updated_at, deleted_at, document
    from records cross join runs using (instance_id, resource) order by seq`.execute(db);
  await sql`drop table records`.execute(db);
  await sql`alter table records_anew rename to records`.execute(db);
  // Once all are there: sorted, which is many times quicker.
  await sql`create unique index records_key on records (list, id)`.execute(db);
  await sql`create index records_live on records (list) where deleted_at is null`.execute(db);

  await sql`create table seen_ranges_anew (
    list integer not null,
    first integer not null,
    last integer not null,
    primary key (list, first)) without rowid`.execute(db);
  await sql`
    insert into seen_ranges_anew (list, first, last)
    select list, first, last from seen_ranges join runs using (instance_id, resource)`.execute(db);
  await sql`drop table seen_ranges`.execute(db);
  await sql`alter table seen_ranges_anew rename to seen_ranges`.execute(db);

  await sql`create table search_queue_anew (
    place integer primary key,
    list integer not null,
    seqs text not null,
    count integer not null)`.execute(db);
  await sql`
    insert into search_queue_anew (place, list, seqs, count)
    select place, list, seqs, count from search_queue join runs using (instance_id, resource)`.execute(db);
  await sql`drop table search_queue`.execute(db);
  await sql`alter table search_queue_anew rename to search_queue`.execute(db);
  await sql`create index search_queue_list on search_queue (list, count)`.execute(db);
}
