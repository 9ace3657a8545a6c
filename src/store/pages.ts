import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import { type Database, manyRows, Store, type StoreDialect } from './database.ts';
import { type List, type ListClaim, lockClaimed, NO_WAIT, nextSeq } from './lists.ts';
import { type ReadPage, type RejectedItem, readItems } from './page-items.ts';
import { NO_ERROR, NOT_FAILING, type Run } from './runs.ts';
import type { RecordTable, Schema } from './schema.ts';

/** Rows of one statement: databases take some ten thousand values at once. */
const ROWS_AT_ONCE = 500;

/** Rejected records of a list that are kept. */
const MOST_REJECTED = 100;

/** How much of a rejected record's text is kept, in UTF-16 units. */
const EXCERPT_LENGTH = 500;

/** A page as it came, with the requests that it took. */
export interface FetchedPage {
  /** The text of each item, as the service sent it. It may be no JSON. */
  texts: readonly string[];
  /** The next page's address; null at the end. */
  next: string | null;
  requests: number;
  refused: number;
}

type KnownRecord = Pick<
  Selectable<RecordTable>,
  'id' | 'external_id' | 'hash' | 'created_seq' | 'deleted_at' | 'erased_at'
> & { run: number | null };

interface Written {
  created: number;
  changed: number;
  /** Live records that the run had not seen before. */
  newlySeen: number;
}

/** A crash of the database took back the commit before, or the run has ended. */
class LostRunError extends Error {}

/** Writing the pages of full runs and checks. */
export class PageStore extends Store {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    super(db);
    this.#statements = prepare(db.dialect);
  }

  /**
   * Writes what a page of a full run changes, what it has seen, and the cursor, in one transaction.
   *
   * @param startedFrom the cursor that the page was fetched by
   * @param mostHeadPages a check reads so many pages at most
   * @returns the run as it is now, and whether a record changed; undefined, with nothing written, when another worker has
   *   the list, it is paused or ended by now, or a crash of the database took back the commit before
   */
  async commit(
    claim: ListClaim,
    startedFrom: string | null,
    page: FetchedPage,
    now: number,
    mostHeadPages: number,
  ): Promise<{ run: Run; hasChanges: boolean } | undefined> {
    const read = readItems(page.texts);
    return this.#write(claim, read, now, async (tx, { created, changed, newlySeen }) => {
      const changes = created + changed;
      const added = {
        created,
        changed,
        pages: 1,
        records: page.texts.length - read.rejected.length,
        seen: newlySeen,
        rejected: read.rejected.length,
        unreadable: read.rejected.filter(({ isUnreadable }) => isUnreadable).length,
        requests: page.requests,
        refused: page.refused,
      };
      const columns = Object.keys(added) as (keyof typeof added)[];
      const run = await tx
        .updateTable('runs')
        .set({ ...NO_ERROR, ...NO_WAIT, cursor: page.next, state: 'running' })
        .set((old) => Object.fromEntries(columns.map((column) => [column, old(column, '+', added[column])])))
        .set({
          // Null up to the first page without a change, where a check would have stopped.
          behind: sql<number | null>`case when behind is not null or pages >= ${sql.lit(mostHeadPages)}
            then coalesce(behind, 0) + ${changes} when ${changes} = 0 then 0 end`,
        })
        .where('id', '=', claim.run)
        .where('finished_at', 'is', null)
        .where('cursor', 'is not distinct from', startedFrom)
        .returningAll()
        .executeTakeFirst();
      if (run === undefined) throw new LostRunError();
      return { run, hasChanges: changes > 0 };
    });
  }

  /**
   * Whether a page has news for a check: a record that is new, changed, or not seen by the claim's full run. Rejected and
   * erased records are none.
   */
  async hasNews({ list, run }: ListClaim, { items }: ReadPage): Promise<boolean> {
    const known = await this.#findKnown(this.db, list, [...items.keys()]);
    return [...items.values()].some(({ id, hash }) => {
      const row = known.get(id);
      if (row !== undefined && row.erased_at !== null) return false;
      return row?.hash !== hash || row.deleted_at !== null || row.run === null || row.run < run;
    });
  }

  /**
   * Writes what a page of a check changes, and notes the records as seen that the claim's full run missed. The claim then
   * counts one commit more.
   *
   * @param read its items in the order in which they are written
   * @param fullDueAt when the next full run begins, if the check ran out (milliseconds since 1970)
   * @returns what changed; undefined, with nothing written, as {@link commit}
   */
  async commitCheck(
    claim: ListClaim,
    read: ReadPage,
    fullDueAt: number | undefined,
    now: number,
  ): Promise<Written | undefined> {
    const written = await this.#write(claim, read, now, async (tx, counts, list) => {
      if (fullDueAt !== undefined) {
        // The gap behind its pages stays if it dies before its end.
        const open = tx.updateTable('runs').set({ is_unsure: 1 }).where('id', '=', claim.run);
        await open.where('finished_at', 'is', null).execute();
      }
      await tx
        .updateTable('lists')
        .set({ commits: claim.commits + 1, caught: list.caught + counts.created + counts.changed })
        .set({ full_due_at: Math.min(list.full_due_at, fullDueAt ?? list.full_due_at) })
        .where('id', '=', claim.list)
        .execute();
      return counts;
    });
    if (written !== undefined) claim.commits++;
    return written;
  }

  /**
   * Writes records that a full run asked for one by one.
   *
   * @returns false, with nothing written, as {@link commit}
   */
  async commitAsked(claim: ListClaim, read: ReadPage, now: number): Promise<boolean> {
    const written = await this.#write(claim, read, now, async (tx, { created, changed }) => {
      await tx
        .updateTable('runs')
        .set((old) => ({ created: old('created', '+', created), changed: old('changed', '+', changed) }))
        .where('id', '=', claim.run)
        .execute();
      const counted = tx.updateTable('lists').set({ commits: claim.commits + 1 });
      await counted.where('id', '=', claim.list).execute();
      return true;
    });
    if (written) claim.commits++;
    return written ?? false;
  }

  /** Writes records under a claim, and what else belongs into the transaction. */
  async #write<Result>(
    claim: ListClaim,
    read: ReadPage,
    now: number,
    finish: (tx: Transaction<Schema>, written: Written, list: List) => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      return await this.db.transact(async (tx) => {
        const list = await lockClaimed(this.db, tx, claim);
        if (list === undefined) return undefined;
        return finish(tx, await this.#writeRecords(tx, claim, list, read, now), list);
      });
    } catch (error) {
      if (error instanceof LostRunError) return undefined;
      throw error;
    }
  }

  async #writeRecords(
    tx: Transaction<Schema>,
    claim: ListClaim,
    list: List,
    { items, rejected }: ReadPage,
    now: number,
  ): Promise<Written> {
    const rejectedIds = new Set(rejected.flatMap(({ ids = [] }) => ids));
    const known = await this.#findKnown(tx, claim.list, [...items.keys(), ...rejectedIds]);

    let seq = nextSeq(list.change_seq);
    const fresh: unknown[][] = [];
    const seen: number[] = [];
    const counts = { created: 0, changed: 0 };
    const see = ({ id, run }: KnownRecord) => {
      if (run === null || run < claim.run) seen.push(id);
    };
    for (const { id, hash, text } of items.values()) {
      const row = known.get(id);
      // Erased for good, though the service still sends it.
      if (row !== undefined && row.erased_at !== null) continue;
      const isLive = row !== undefined && row.deleted_at === null;
      if (isLive) see(row);
      if (isLive && row.hash === hash) continue;
      counts[isLive ? 'changed' : 'created']++;
      fresh.push([claim.list, id, hash, seq, isLive ? row.created_seq : seq, text]);
      seq++;
    }
    // The service still has a rejected record: the copy keeps its older form.
    for (const id of rejectedIds) {
      const row = known.get(id);
      if (row?.deleted_at === null && row.erased_at === null && !items.has(id)) see(row);
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
    return { ...counts, newlySeen: Number(newlySeen) };
  }

  async #findKnown(db: Kysely<Schema>, list: number, ids: readonly string[]) {
    const known = new Map<string, KnownRecord>();
    for (const some of portions(ids.map((id) => [id]))) {
      const { rows } = await this.#statements.known(db, some, list);
      for (const row of rows) known.set(row.external_id, row);
    }
    return known;
  }

  async #keepRejected(
    tx: Transaction<Schema>,
    { list, run }: ListClaim,
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
      (ids, list) => `select id, external_id, hash, created_seq, deleted_at, erased_at, seen.run from records
        left join seen on seen.list = records.list and seen.record = records.id
        where external_id in (${ids}) and records.list = ${list}`,
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
