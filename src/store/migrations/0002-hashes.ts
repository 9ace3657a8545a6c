import { type Kysely, sql } from 'kysely';
import { documentHash } from '../document-hash.ts';

/** How many documents are read at a time. */
const PORTION = 1_000;

/**
 * Records are compared by a hash, what a run sees is kept as ranges, and what the copy holds is counted as it is
 * written. Records come into a new table, with the document as the last column, so that reading the others does not
 * walk over it; without a reference to the instance, which would be looked up for every row: a page's transaction
 * makes sure of it once.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table records_anew (
    seq integer primary key,
    instance_id text not null,
    resource text not null,
    id text not null,
    hash text not null,
    updated_at bigint not null,
    deleted_at bigint,
    document text not null,
    unique (instance_id, resource, id))`.execute(db);
  await copyRecords(db);

  await sql`create table seen_ranges (
    instance_id text not null,
    resource text not null,
    first integer not null,
    last integer not null,
    primary key (instance_id, resource, first)) without rowid`.execute(db);
  // What unfinished runs have seen: neighbours in the order of seq that carry the run's generation.
  await sql`
    insert into seen_ranges (instance_id, resource, first, last)
    select instance_id, resource, min(seq), max(seq) from (
      select record.instance_id, record.resource, record.seq,
        record.seq - row_number() over (partition by record.instance_id, record.resource order by record.seq) as island
      from records as record
      join runs as run on run.instance_id = record.instance_id and run.resource = record.resource
      where run.state <> 'idle' and record.generation = run.generation)
    group by instance_id, resource, island`.execute(db);

  await sql`drop table records`.execute(db);
  await sql`alter table records_anew rename to records`.execute(db);
  await sql`create index records_live on records (instance_id, resource) where deleted_at is null`.execute(
    db,
  );
  await sql`alter table runs drop column generation`.execute(db);
  await sql`alter table runs add column stored integer not null default 0`.execute(db);
  await sql`update runs set stored = (
    select count(*) from records
    where records.instance_id = runs.instance_id and records.resource = runs.resource and deleted_at is null)`.execute(
    db,
  );
}

async function copyRecords(db: Kysely<unknown>): Promise<void> {
  for (let after = 0; ; ) {
    const { rows } = await sql<{ seq: number; document: string }>`
      select seq, document from records where seq > ${after} order by seq limit ${PORTION}`.execute(db);
    const last = rows.at(-1);
    if (last === undefined) return;
    const hashes = JSON.stringify(rows.map(({ seq, document }) => [seq, documentHash(document)]));
    await sql`
      insert into records_anew (seq, instance_id, resource, id, hash, updated_at, deleted_at, document)
      select record.seq, instance_id, resource, record.id, hashed.value ->> 1, updated_at, deleted_at, document
      from json_each(${hashes}) as hashed join records as record on record.seq = hashed.value ->> 0`.execute(
      db,
    );
    after = last.seq;
  }
}
