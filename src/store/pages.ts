import type { Selectable, Transaction } from 'kysely';
import { type Database, lockList, manyRows, nextSeq, type StoreDialect } from './database.ts';
import { type PageTexts, type RejectedItem, readItems } from './page-items.ts';
import { NOT_FAILING, type Run, type RunClaim } from './runs.ts';
import type { RecordTable, Schema } from './schema.ts';

/** Rows of one statement: databases take some ten thousand values at a time. */
const ROWS_AT_ONCE = 500;

/** Rejected records of a list that are kept for a look. */
const MOST_REJECTED = 100;

/** How much of a rejected record's text is kept, in UTF-16 units. */
const EXCERPT_LENGTH = 500;

/** A page as it came, and what it took to get it. */
export interface FetchedPage extends PageTexts {
  /** Where it leads; null is the end. */
  next: string | null;
  requests: number;
  refused: number;
}

/** A run was taken over, paused or ended, or the database has lost the commit before: nothing is written. */
class LostClaimError extends Error {}

/** Writing the pages of a run. */
export class PageStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db.dialect);
  }

  /**
   * Writes what a page changes, what it has seen, and the cursor, in one transaction.
   *
   * @param startedFrom the cursor that the page was fetched by
   * @returns the run as it is now, and whether anything changed; undefined, with nothing written, when the run is
   *   another worker's, paused or ended by now, or the database has lost the commit before
   */
  async commit(
    claim: RunClaim,
    startedFrom: string | null,
    page: FetchedPage,
    now: number,
  ): Promise<{ run: Run; hasChanges: boolean } | undefined> {
    const read = readItems(page);
    try {
      return await this.#db.transact((transaction) =>
        this.#write(transaction, claim, startedFrom, page, read, now),
      );
    } catch (error) {
      if (error instanceof LostClaimError) return undefined;
      throw error;
    }
  }

  async #write(
    transaction: Transaction<Schema>,
    claim: RunClaim,
    startedFrom: string | null,
    page: FetchedPage,
    { items, rejected }: ReturnType<typeof readItems>,
    now: number,
  ): Promise<{ run: Run; hasChanges: boolean }> {
    const list = await lockList(this.#db, transaction, claim.list);
    if (list === undefined) throw new LostClaimError();
    const rejectedIds = new Set(rejected.flatMap(({ ids = [] }) => ids));
    const known = await this.#findKnown(transaction, claim.list, [...items.keys(), ...rejectedIds]);

    let seq = nextSeq(list.change_seq);
    const fresh: unknown[][] = [];
    const seen: number[] = [];
    const counts = { created: 0, changed: 0 };
    for (const { id, hash, text } of items.values()) {
      const row = known.get(id);
      // Erased for good, though the service still sends it.
      if (row !== undefined && row.erased_at !== null) continue;
      const isLive = row !== undefined && row.deleted_at === null;
      if (isLive) seen.push(row.id);
      if (isLive && row.hash === hash) continue;
      counts[isLive ? 'changed' : 'created']++;
      fresh.push([claim.list, id, hash, seq, isLive ? row.created_seq : seq, text]);
      seq++;
    }
    // The service has them still: their older form stays.
    for (const id of rejectedIds) {
      const row = known.get(id);
      if (row !== undefined && row.deleted_at === null && row.erased_at === null && !items.has(id))
        seen.push(row.id);
    }
    for (const rows of portions(fresh)) {
      const { rows: written } = await this.#statements.upsert(transaction, rows);
      for (const row of written) if (row.created_seq === row.change_seq) seen.push(row.id);
    }
    let newlySeen = 0n;
    for (const records of portions(seen)) {
      const rows = records.map((record) => [claim.list, record, claim.run]);
      newlySeen += (await this.#statements.see(transaction, rows)).numAffectedRows ?? 0n;
    }
    if (fresh.length > 0 || list.failing_since !== null) {
      await transaction
        .updateTable('lists')
        .set({ ...NOT_FAILING, stored: list.stored + counts.created })
        .$if(fresh.length > 0, (query) => query.set({ change_seq: seq - 1 }))
        .where('id', '=', claim.list)
        .execute();
    }
    if (rejected.length > 0) await this.#keepRejected(transaction, claim, rejected, now);
    const run = await transaction
      .updateTable('runs')
      .set((old) => ({
        cursor: page.next,
        state: 'running',
        pages: old('pages', '+', 1),
        records: old('records', '+', page.texts.length - rejected.length),
        seen: old('seen', '+', Number(newlySeen)),
        created: old('created', '+', counts.created),
        changed: old('changed', '+', counts.changed),
        rejected: old('rejected', '+', rejected.length),
        unreadable: old('unreadable', '+', rejected.filter(({ isUnreadable }) => isUnreadable).length),
        requests: old('requests', '+', page.requests),
        refused: old('refused', '+', page.refused),
        attempt: 0,
        stuck_since: null,
        error_kind: null,
        error_detail: null,
        waiting_for: null,
        wait_until: null,
      }))
      .where('id', '=', claim.run)
      .where('fence', '=', claim.fence)
      .where('cursor', 'is not distinct from', startedFrom)
      .returningAll()
      .executeTakeFirst();
    if (run === undefined) throw new LostClaimError();
    return { run, hasChanges: fresh.length > 0 };
  }

  async #findKnown(transaction: Transaction<Schema>, list: number, ids: readonly string[]) {
    const known = new Map<string, KnownRecord>();
    for (const some of portions(ids)) {
      const { rows } = await this.#statements.known(
        transaction,
        some.map((id) => [id]),
        list,
      );
      for (const row of rows) known.set(row.external_id, row);
    }
    return known;
  }

  async #keepRejected(
    transaction: Transaction<Schema>,
    { list, run }: RunClaim,
    items: readonly RejectedItem[],
    now: number,
  ): Promise<void> {
    const { count } = await transaction
      .selectFrom('rejected_records')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('list', '=', list)
      .executeTakeFirstOrThrow();
    let left = MOST_REJECTED - Number(count);
    for (const { text, hash, reason } of items) {
      const { numUpdatedRows } = await transaction
        .updateTable('rejected_records')
        .set({ run })
        .where('list', '=', list)
        .where('hash', '=', hash)
        .executeTakeFirst();
      if (numUpdatedRows > 0n || left-- <= 0) continue;
      // PostgreSQL keeps no NUL, which may stand in what is no JSON.
      const excerpt = text.slice(0, EXCERPT_LENGTH).toWellFormed().replaceAll('\0', '\ufffd');
      await transaction
        .insertInto('rejected_records')
        .values({ list, hash, reason, excerpt, length: text.length, at: now, run })
        .execute();
    }
  }
}

type KnownRecord = Pick<
  Selectable<RecordTable>,
  'id' | 'external_id' | 'hash' | 'created_seq' | 'deleted_at' | 'erased_at'
>;

function prepare(dialect: StoreDialect) {
  return {
    known: manyRows<KnownRecord>(
      dialect,
      1,
      (ids, list) => `select id, external_id, hash, created_seq, deleted_at, erased_at from records
        where external_id in (${ids}) and list = ${list}`,
    ),
    upsert: manyRows<{ id: number; change_seq: number; created_seq: number }>(
      dialect,
      6,
      (
        rows,
      ) => `insert into records (list, external_id, hash, change_seq, created_seq, document) values ${rows}
        on conflict (list, external_id) do update set hash = excluded.hash, change_seq = excluded.change_seq,
          created_seq = excluded.created_seq, deleted_at = null, document = excluded.document
        returning id, change_seq, created_seq`,
    ),
    /** Counts the records that the run has not seen before. */
    see: manyRows(
      dialect,
      3,
      (rows) => `insert into seen (list, record, run) values ${rows}
        on conflict (list, record) do update set run = excluded.run where seen.run < excluded.run`,
    ),
  };
}

function* portions<T>(all: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += ROWS_AT_ONCE) yield all.slice(at, at + ROWS_AT_ONCE);
}
