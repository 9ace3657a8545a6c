import { type Kysely, sql } from 'kysely';

/** How many records are read at a time. */
const PORTION = 1_000;

/**
 * What is set aside: batches that the own logic did not take, as `seq`s of records, and records that the copy cannot
 * keep. And ids that are numbers are marked as such, so that 7 and "7" are two records: see `page-items.ts`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table parked_batches (
    place integer primary key autoincrement,
    list integer not null,
    seqs text not null,
    count integer not null,
    tries integer not null,
    error text not null,
    parked_at bigint not null,
    tried_at bigint not null)`.execute(db);
  await sql`create index parked_batches_due on parked_batches (list, tried_at)`.execute(db);
  await sql`create table quarantine (
    list integer not null,
    hash text not null,
    reason text not null,
    excerpt text not null,
    length integer not null,
    first_seen_at bigint not null,
    seen_at bigint not null,
    primary key (list, hash)) without rowid`.execute(db);
  await sql`alter table runs add column own_tries integer not null default 0`.execute(db);
  await markTexts(db);
  await markNumbers(db);
}

/** Texts that begin with the mark get another one; the longest first, so that none meets another on the way. */
async function markTexts(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ seq: number }>`
    select seq from records where id glob '#*' order by length(id) desc`.execute(db);
  for (const { seq } of rows) await sql`update records set id = '#' || id where seq = ${seq}`.execute(db);
}

async function markNumbers(db: Kysely<unknown>): Promise<void> {
  for (let after = 0; ; ) {
    const { rows } = await sql<{ seq: number; document: string }>`
      select seq, document from records
      where seq > ${after} and (id glob '[0-9]*' or id glob '-[0-9]*') order by seq limit ${PORTION}`.execute(
      db,
    );
    const last = rows.at(-1);
    if (last === undefined) return;
    for (const { seq, document } of rows) {
      if (!hasNumberId(document)) continue;
      await sql`update records set id = '#' || id where seq = ${seq}`.execute(db);
    }
    after = last.seq;
  }
}

/** Of a document that is damaged nobody can tell: its record keeps the id that it has, and all others go on. */
function hasNumberId(document: string): boolean {
  try {
    return typeof JSON.parse(document).id === 'number';
  } catch {
    return false;
  }
}
