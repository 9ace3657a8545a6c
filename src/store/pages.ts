import type { CompiledQuery, Selectable, Transaction } from 'kysely';
import {
  type Database,
  Store,
  type StoreDialect,
  statement,
  together,
  type WrittenRecord,
} from './database.ts';
import { ifHeld, type List, type ListClaim, nextSeq } from './lists.ts';
import { type ReadPage, type RejectedItem, readItems } from './page-items.ts';
import type { Run } from './runs.ts';
import type { RecordTable, Schema } from './schema.ts';
import { findTombstones } from './tombstones.ts';

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

/** Statements that a page needs besides those of its records, and what becomes of their results. */
interface Finish<Result> {
  queries: CompiledQuery[];
  /** @returns undefined if the run has ended or has another cursor by now: then nothing is written */
  done(rows: readonly unknown[]): Result | undefined;
}

/** A crash of the database took back the commit before, or the run has ended. */
class LostRunError extends Error {}

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
    const { rejected } = read;
    return this.#write(claim, read, now, (_, { created, changed, newlySeen }) => ({
      queries: [
        this.#statements.move({
          ...{ run: claim.run, startedFrom, next: page.next, created, changed, newlySeen, mostHeadPages },
          changes: created + changed,
          records: page.texts.length - rejected.length,
          rejected: rejected.length,
          unreadable: rejected.filter(({ isUnreadable }) => isUnreadable).length,
          requests: page.requests,
          refused: page.refused,
        }),
      ],
      done: ([run]) =>
        run === undefined ? undefined : { run: run as Run, hasChanges: created + changed > 0 },
    }));
  }

  /**
   * Whether a page has news for a check: a record that is new, changed, or not seen by the claim's full run. Rejected and
   * erased records are none.
   */
  async hasNews({ list, run }: ListClaim, { items }: ReadPage): Promise<boolean> {
    const { rows } = await this.db.executeQuery(this.#known(list, [...items.keys()]));
    const known = byId(rows);
    const unknown = [...items.keys()].filter((id) => !known.has(id));
    const found = this.db.selectFrom('lists').selectAll().where('id', '=', list);
    const gone =
      unknown.length === 0
        ? new Set()
        : await findTombstones(this.db, await found.executeTakeFirst(), unknown);
    return [...items.values()].some(({ id, hash }) => {
      const row = known.get(id);
      if (row !== undefined ? row.erased_at !== null : gone.has(id)) return false;
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
    const written = await this.#write(claim, read, now, (list, counts) => {
      const counted = this.db
        .updateTable('lists')
        .set({ commits: claim.commits + 1, caught: list.caught + counts.created + counts.changed })
        .set({ full_due_at: Math.min(list.full_due_at, fullDueAt ?? list.full_due_at) })
        .where('id', '=', claim.list);
      // The gap behind its pages stays if it dies before its end.
      const open = this.db.updateTable('runs').set({ is_unsure: 1 }).where('id', '=', claim.run);
      const unsure = open.where('finished_at', 'is', null);
      const queries = [counted.compile(), ...(fullDueAt === undefined ? [] : [unsure.compile()])];
      return { queries, done: () => counts };
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
    const written = await this.#write(claim, read, now, (_, { created, changed }) => {
      const run = this.db
        .updateTable('runs')
        .set((old) => ({ created: old('created', '+', created), changed: old('changed', '+', changed) }))
        .where('id', '=', claim.run);
      const counted = this.db.updateTable('lists').set({ commits: claim.commits + 1 });
      return {
        queries: [run.compile(), counted.where('id', '=', claim.list).compile()],
        done: () => true as const,
      };
    });
    if (written) claim.commits++;
    return written ?? false;
  }

  /** Writes records under a claim: between begin and commit, two round trips, or more in a list with tombstones. */
  async #write<Result>(
    claim: ListClaim,
    read: ReadPage,
    now: number,
    finish: (list: List, written: Written) => Finish<Result>,
  ): Promise<Result | undefined> {
    const ids = [...read.items.keys(), ...read.rejected.flatMap((item) => item.ids ?? [])];
    try {
      return await this.db.transact(async (tx) => {
        const [locked, known] = await together<[List, KnownRecord]>(this.db, tx, [
          this.#statements.lock({ list: claim.list }),
          this.#known(claim.list, ids),
        ]);
        const list = ifHeld(locked.rows[0], claim);
        if (list === undefined) return undefined;
        const rows = byId(known.rows);
        const unknown = [...read.items.keys()].filter((id) => !rows.has(id));
        const gone = await findTombstones(tx, list, unknown);
        const { queries, written } = this.#recordsOf(claim, list, read, rows, gone);
        const last = finish(list, written);
        const results = await together(this.db, tx, [...queries, ...last.queries]);
        const result = last.done(results[queries.length]?.rows ?? []);
        if (result === undefined) throw new LostRunError();
        if (read.rejected.length > 0) await this.#keepRejected(tx, claim, read.rejected, now);
        return result;
      });
    } catch (error) {
      if (error instanceof LostRunError) return undefined;
      throw error;
    }
  }

  /** The statements that write the records of a page. */
  #recordsOf(
    claim: ListClaim,
    list: List,
    { items, rejected }: ReadPage,
    known: ReadonlyMap<string, KnownRecord>,
    gone: ReadonlySet<string>,
  ): { queries: CompiledQuery[]; written: Written } {
    let seq = nextSeq(list.change_seq);
    const fresh: WrittenRecord[] = [];
    const seen: number[] = [];
    const counts = { created: 0, changed: 0 };
    const see = ({ id, run }: KnownRecord) => {
      if (run === null || run < claim.run) seen.push(id);
    };
    for (const { id, hash, text } of items.values()) {
      const row = known.get(id);
      // Erased for good, though the service still sends it.
      if (row !== undefined ? row.erased_at !== null : gone.has(id)) continue;
      const isLive = row !== undefined && row.deleted_at === null;
      if (isLive) see(row);
      if (isLive && row.hash === hash) continue;
      counts[isLive ? 'changed' : 'created']++;
      fresh.push({ id, hash, seq, createdSeq: isLive ? row.created_seq : seq, text });
      seq++;
    }
    // The service still has a rejected record: the copy keeps its older form.
    for (const id of new Set(rejected.flatMap(({ ids = [] }) => ids))) {
      const row = known.get(id);
      if (row?.deleted_at === null && row.erased_at === null && !items.has(id)) see(row);
    }
    const { dialect } = this.db;
    const queries: CompiledQuery[] = dialect.writeRecords(claim.list, claim.run, fresh);
    if (seen.length > 0) {
      queries.push(this.#statements.see({ list: claim.list, run: claim.run, seen: dialect.values(seen) }));
    }
    if (fresh.length > 0 || list.failing_since !== null) {
      const changeSeq = fresh.at(-1)?.seq ?? list.change_seq;
      queries.push(this.#statements.count({ list: claim.list, created: counts.created, changeSeq }));
    }
    return { queries, written: { ...counts, newlySeen: seen.length + counts.created } };
  }

  #known(list: number, ids: readonly string[]): CompiledQuery<KnownRecord> {
    return this.#statements.known({ list, ids: this.db.dialect.values(ids) });
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
  const { isAny } = dialect;
  return {
    lock: statement<List>(
      dialect,
      `select * from lists where id = :list ${dialect.name === 'postgres' ? 'for update' : ''}`,
    ),
    known: statement<KnownRecord>(
      dialect,
      `select id, external_id, hash, created_seq, deleted_at, erased_at, seen.run from records
        left join seen on seen.list = records.list and seen.record = records.id
        where ${isAny('external_id', ':ids', 'text')} and records.list = :list`,
    ),
    see: statement(
      dialect,
      `update seen set run = :run where list = :list and ${isAny('record', ':seen', 'bigint')}`,
    ),
    count: statement(
      dialect,
      `update lists set failing_since = null, failing_told_at = null, stored = stored + :created,
        change_seq = :changeSeq where id = :list`,
    ),
    // `behind` is null up to the first page without a change, where a check would have stopped.
    move: statement<Run>(
      dialect,
      `update runs set state = 'running', cursor = :next, waiting_for = null, wait_until = null,
        error_kind = null, error_detail = null, attempt = 0, stuck_since = null,
        pages = pages + 1, records = records + :records, seen = seen + :newlySeen,
        created = created + :created, changed = changed + :changed,
        rejected = rejected + :rejected, unreadable = unreadable + :unreadable,
        requests = requests + :requests, refused = refused + :refused,
        behind = case when behind is not null or pages >= :mostHeadPages
          then coalesce(behind, 0) + :changes when :changes = 0 then 0 end
        where id = :run and finished_at is null and cursor is not distinct from :startedFrom
        returning *`,
    ),
  };
}

function byId(rows: readonly KnownRecord[]): Map<string, KnownRecord> {
  return new Map(rows.map((row) => [row.external_id, row]));
}
