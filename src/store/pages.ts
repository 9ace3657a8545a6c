import type { Selectable, Transaction } from 'kysely';
import { type Database, manyRows, Store, type StoreDialect } from './database.ts';
import { lockList, nextSeq } from './lists.ts';
import { type PageTexts, type RejectedItem, readItems } from './page-items.ts';
import { NO_ERROR, NO_WAIT, NOT_FAILING, type Run, type RunClaim } from './runs.ts';
import type { RecordTable, Schema } from './schema.ts';

/** Rows of one statement: databases take some ten thousand values at once. */
const ROWS_AT_ONCE = 500;

/** Rejected records of a list that are kept. */
const MOST_REJECTED = 100;

/** How much of a rejected record's text is kept, in UTF-16 units. */
const EXCERPT_LENGTH = 500;

/** A page as it came, with the requests that it took. */
export interface FetchedPage extends PageTexts {
  /** The next page's address; null at the end. */
  next: string | null;
  requests: number;
  refused: number;
}

type KnownRecord = Pick<
  Selectable<RecordTable>,
  'id' | 'external_id' | 'hash' | 'created_seq' | 'deleted_at' | 'erased_at'
>;

/** Another worker took the run over, it was paused or ended, or a crash took back the commit before. */
class LostClaimError extends Error {}

/** Writing the pages of a run. */
export class PageStore extends Store {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    super(db);
    this.#statements = prepare(db.dialect);
  }

  /**
   * Writes what a page changes, what it has seen, and the cursor, in one transaction.
   *
   * @param startedFrom the cursor that the page was fetched by
   * @returns the run as it is now, and whether a record changed; undefined, with nothing written, when another worker has
   *   the run, it is paused or ended by now, or a crash of the database took back the commit before
   */
  async commit(
    claim: RunClaim,
    startedFrom: string | null,
    page: FetchedPage,
    now: number,
  ): Promise<{ run: Run; hasChanges: boolean } | undefined> {
    const read = readItems(page);
    try {
      return await this.db.transact((tx) => this.#write(tx, claim, startedFrom, page, read, now));
    } catch (error) {
      if (error instanceof LostClaimError) return undefined;
      throw error;
    }
  }

  async #write(
    tx: Transaction<Schema>,
    claim: RunClaim,
    startedFrom: string | null,
    page: FetchedPage,
    { items, rejected }: ReturnType<typeof readItems>,
    now: number,
  ): Promise<{ run: Run; hasChanges: boolean }> {
    const list = await lockList(this.db, tx, claim.list);
    if (list === undefined) throw new LostClaimError();
    const rejectedIds = new Set(rejected.flatMap(({ ids = [] }) => ids));
    const known = await this.#findKnown(tx, claim.list, [...items.keys(), ...rejectedIds]);

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
    // The service still has a rejected record: the copy keeps its older form.
    for (const id of rejectedIds) {
      const row = known.get(id);
      if (row?.deleted_at === null && row.erased_at === null && !items.has(id)) seen.push(row.id);
    }
    for (const rows of portions(fresh)) {
      const { rows: written } = await this.#statements.upsert(tx, rows);
      for (const row of written) if (row.created_seq === row.change_seq) seen.push(row.id);
    }
    let newlySeen = 0n;
    for (const records of portions(seen)) {
      const rows = records.map((record) => [claim.list, record, claim.run]);
      newlySeen += (await this.#statements.see(tx, rows)).numAffectedRows ?? 0n;
    }
    if (fresh.length > 0 || list.failing_since !== null) {
      await tx
        .updateTable('lists')
        .set({ ...NOT_FAILING, stored: list.stored + counts.created })
        .$if(fresh.length > 0, (query) => query.set({ change_seq: seq - 1 }))
        .where('id', '=', claim.list)
        .execute();
    }
    if (rejected.length > 0) await this.#keepRejected(tx, claim, rejected, now);
    const added = {
      ...counts,
      pages: 1,
      records: page.texts.length - rejected.length,
      seen: Number(newlySeen),
      rejected: rejected.length,
      unreadable: rejected.filter(({ isUnreadable }) => isUnreadable).length,
      requests: page.requests,
      refused: page.refused,
    };
    const columns = Object.keys(added) as (keyof typeof added)[];
    const run = await tx
      .updateTable('runs')
      .set({ ...NO_ERROR, ...NO_WAIT, cursor: page.next, state: 'running' })
      .set((old) => Object.fromEntries(columns.map((column) => [column, old(column, '+', added[column])])))
      .where((eb) => eb.and({ id: claim.run, fence: claim.fence }))
      .where('cursor', 'is not distinct from', startedFrom)
      .returningAll()
      .executeTakeFirst();
    if (run === undefined) throw new LostClaimError();
    return { run, hasChanges: fresh.length > 0 };
  }

  async #findKnown(tx: Transaction<Schema>, list: number, ids: readonly string[]) {
    const known = new Map<string, KnownRecord>();
    for (const some of portions(ids.map((id) => [id]))) {
      const { rows } = await this.#statements.known(tx, some, list);
      for (const row of rows) known.set(row.external_id, row);
    }
    return known;
  }

  async #keepRejected(
    tx: Transaction<Schema>,
    { list, run }: RunClaim,
    items: readonly RejectedItem[],
    now: number,
  ): Promise<void> {
    for (const { text, hash, reason } of items) {
      const excerpt = text.slice(0, EXCERPT_LENGTH).toWellFormed().replaceAll('\0', '\ufffd');
      await tx
        .insertInto('rejected_records')
        .values({ list, hash, reason, excerpt, length: text.length, at: now, run })
        .onConflict((conflict) => conflict.columns(['list', 'hash']).doUpdateSet({ run }))
        .execute();
    }
    const all = tx.selectFrom('rejected_records').select('hash').where('list', '=', list);
    const kept = all.orderBy('hash').limit(MOST_REJECTED);
    await tx.deleteFrom('rejected_records').where('list', '=', list).where('hash', 'not in', kept).execute();
  }
}

function prepare(dialect: StoreDialect) {
  return {
    known: manyRows<KnownRecord>(
      dialect,
      1,
      (ids, list) => `select id, external_id, hash, created_seq, deleted_at, erased_at from records
        where external_id in (${ids}) and list = ${list}`,
    ),
    upsert: manyRows<Pick<Selectable<RecordTable>, 'id' | 'change_seq' | 'created_seq'>>(
      dialect,
      6,
      (rows) => `insert into records (list, external_id, hash, change_seq, created_seq, document)
        values ${rows} on conflict (list, external_id) do update set hash = excluded.hash,
          change_seq = excluded.change_seq, created_seq = excluded.created_seq, deleted_at = null,
          document = excluded.document
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
