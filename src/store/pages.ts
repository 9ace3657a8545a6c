import Sqlite from 'better-sqlite3';
import type { Database } from './database.ts';
import { type BatchIds, InDoubtStore } from './in-doubt.ts';
import { type PageItem, type PageTexts, readItems, type UnusableItem } from './page-items.ts';
import { type BatchSeqs, ParkedStore, type Parking } from './parked-batches.ts';
import { QuarantineStore } from './quarantine.ts';
import { LIST_OF, type Run, type RunClaim } from './runs.ts';
import { QUEUE_FOR_SEARCH } from './search-index.ts';
import { toRanges } from './seq-ranges.ts';

/** Records that one statement inserts: a fifth of the time of inserting is the calls', one by one. */
const ROWS_AT_ONCE = 25;

/** What a page changes in the copy. */
export interface PageChanges {
  /** Places of the page's records that are new to the copy, or were deleted in it; or the own logic may have none. */
  created: number[];
  /** Places of those that differ from it, or the own logic may know otherwise. */
  changed: number[];
  /** What the copy cannot keep. */
  unusable: UnusableItem[];
  /** How many it can. */
  records: number;
  /** What is written of it; all else is in the copy already. */
  writes: PageWrites;
}

interface PageWrites {
  /** Records that the copy has never held. */
  inserts: PageItem[];
  updates: { seq: number; item: PageItem }[];
  /** Records of the copy that the own logic may not have. */
  retold: { seq: number; item: PageItem }[];
  /** Deleted records that come back. */
  revived: { seq: number; item: PageItem }[];
  /** The page's records that the copy holds, by `seq`, changed or not. */
  seen: number[];
}

/** Documents are bound as the bytes that came: to make a string of them and bytes again would take a tenth of a page's time. */
type InsertRow = [list: number, id: string, hash: string, now: number, document: Buffer];

interface Known {
  id: string;
  seq: number;
  hash: string;
  deleted_at: number | null;
}

/** A record was to be inserted that the copy holds, be it as deleted: nothing was written. */
export class KnownRecordError extends Error {}

/**
 * What a page changes if the copy holds none of its records, as in a first run. That saves a look at the copy, a twelfth of
 * what a page costs; {@link PageStore.commit} refuses it where it is not so.
 */
export function assumeNew(page: PageTexts): PageChanges {
  const { items, unusable } = readItems(page);
  const changes = noChanges(page, unusable);
  for (const item of items.values()) note(changes, item, undefined, undefined);
  return changes;
}

/** Comparing pages with the copy and writing them, under the run that read them. */
export class PageStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #quarantine: QuarantineStore;
  readonly #parked: ParkedStore;
  readonly #inDoubt: InDoubtStore;

  /** @param hideSecrets leaves secrets out of what is kept of items that are no records */
  constructor(db: Database, hideSecrets?: (text: string) => string) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#quarantine = new QuarantineStore(db, hideSecrets);
    this.#parked = new ParkedStore(db);
    this.#inDoubt = new InDoubtStore(db);
  }

  /**
   * Compares a page with the copy, by hashes of the documents, without writing. What differs is told as new where the own
   * logic has not taken the record as such before.
   */
  async compare(
    { instance_id: instanceId, resource }: Pick<Run, 'instance_id' | 'resource'>,
    page: PageTexts,
  ): Promise<PageChanges> {
    const { items, unusable } = readItems(page);
    const ids = JSON.stringify([...items.keys()]);
    const { rows, doubts, untaken } = await this.#db.atOnce(() => {
      const rows = this.#statements.known.all(instanceId, resource, ids);
      const doubts = this.#inDoubt.findNow(instanceId, resource);
      const told = rows.filter(({ id, hash }) => hash !== items.get(id)?.hash || doubts.has(id));
      const seqs = told.map(({ seq }) => seq);
      return { rows, doubts, untaken: this.#parked.untakenNow({ instanceId, resource }, seqs) };
    });
    const known = new Map(rows.map((row) => [row.id, row]));
    const changes = noChanges(page, unusable);
    for (const { seq } of rows) changes.writes.seen.push(seq);
    for (const item of items.values()) {
      const row = known.get(item.id);
      const isUntaken = row !== undefined && untaken.has(row.seq);
      note(changes, item, row, isUntaken ? false : doubts.get(item.id));
    }
    changes.created.sort((one, other) => one - other);
    changes.changed.sort((one, other) => one - other);
    return changes;
  }

  /**
   * Writes what a page changes, notes what it has seen and moves the cursor, in one transaction, if the claim is
   * still the newest and the instance is still active. What is told of the page is in doubt no more then.
   *
   * @param changes as compared after the page before was committed, or assumed
   * @param now milliseconds since 1970
   * @param parking given when the own logic has not taken the page's batch: it is parked in the same transaction
   * @returns the run as it is now; undefined when somebody else has taken it over, or the instance was paused or
   *   disconnected: nothing was written then
   * @throws KnownRecordError when more was assumed to be new than is
   */
  commit(
    claim: RunClaim,
    page: { next: string | null },
    changes: PageChanges,
    now: number,
    parking?: Parking,
  ): Promise<Run | undefined> {
    const { instanceId, resource, fence } = claim;
    const { inserts, updates, retold, revived, seen } = changes.writes;
    const { run, update, queue, absorb, see } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const written = run.get({
        next: page.next,
        records: changes.records,
        skipped: changes.unusable.length,
        stored: inserts.length + revived.length,
        instanceId,
        resource,
        fence,
      });
      if (written === undefined) return undefined;
      const { list } = written;
      const fresh = this.#insert(inserts, ({ id, hash, text }) => [list, id, hash, now, text]);
      for (const known of [updates, retold, revived])
        for (const { seq, item } of known) update.run(item.hash, now, item.text, seq);
      const seqs: BatchSeqs = {
        created: [...revived.map(({ seq }) => seq), ...retold.map(({ seq }) => seq), ...fresh],
        changed: updates.map(({ seq }) => seq),
        deleted: [],
      };
      const toIndex = [...seqs.changed, ...seqs.created];
      if (toIndex.length > 0) queue.run(list, JSON.stringify(toIndex), toIndex.length);
      for (const { first, last } of toRanges([...seen, ...fresh])) {
        const reached = absorb.all({ list, first, last }).map((row) => row.last);
        see.run({ list, first, last: Math.max(last, ...reached) });
      }
      const { comeOrGone, changed } = idsOf(changes);
      this.#inDoubt.settleNow(list, fence, [...comeOrGone, ...changed]);
      if (changes.unusable.length > 0) this.#quarantine.keepNow(list, changes.unusable, now);
      if (parking !== undefined) this.#parked.parkNow(list, seqs, parking, now);
      return written;
    });
  }

  /** @returns their `seq`s: rows of one statement get consecutive ones */
  #insert(items: readonly PageItem[], row: (item: PageItem) => InsertRow): number[] {
    const { insertMany, insert } = this.#statements;
    const fresh: number[] = [];
    let at = 0;
    try {
      for (; items.length - at >= ROWS_AT_ONCE; at += ROWS_AT_ONCE) {
        const many = items.slice(at, at + ROWS_AT_ONCE).flatMap(row);
        const last = Number(insertMany.run(...many).lastInsertRowid);
        for (let behind = ROWS_AT_ONCE - 1; behind >= 0; behind--) fresh.push(last - behind);
      }
      for (const item of items.slice(at)) fresh.push(Number(insert.run(...row(item)).lastInsertRowid));
    } catch (error) {
      if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_CONSTRAINT_UNIQUE')
        throw new KnownRecordError('a record of the page is in the copy', { cause: error });
      throw error;
    }
    return fresh;
  }
}

function noChanges({ items }: PageTexts, unusable: UnusableItem[]): PageChanges {
  return {
    created: [],
    changed: [],
    unusable,
    records: items.length - unusable.length,
    writes: { inserts: [], updates: [], retold: [], revived: [], seen: [] },
  };
}

/** What is told of a page. */
export function idsOf({ writes }: PageChanges): BatchIds {
  const { inserts, updates, retold, revived } = writes;
  return {
    comeOrGone: [...inserts, ...[...retold, ...revived].map(({ item }) => item)].map(({ id }) => id),
    changed: updates.map(({ item }) => item.id),
  };
}

/** @param isKnown for a record in doubt, whether the own logic has it in any case; undefined for any other */
function note(
  { created, changed, writes }: PageChanges,
  item: PageItem,
  known: Known | undefined,
  isKnown: boolean | undefined,
): void {
  if (known === undefined) {
    created.push(item.place);
    writes.inserts.push(item);
  } else if (known.deleted_at !== null) {
    created.push(item.place);
    writes.revived.push({ seq: known.seq, item });
  } else if (isKnown === false) {
    created.push(item.place);
    writes.retold.push({ seq: known.seq, item });
  } else if (known.hash !== item.hash || isKnown) {
    changed.push(item.place);
    writes.updates.push({ seq: known.seq, item });
  }
}

function insertRows(count: number): string {
  const rows = Array.from({ length: count }, () => '(?, ?, ?, ?, cast(? as text))').join(', ');
  return `insert or fail into records (list, id, hash, updated_at, document) values ${rows}`;
}

function prepare(db: Database) {
  return {
    known: db.prepare<[instanceId: string, resource: string, ids: string], Known>(`
      select id, seq, hash, deleted_at from records
      where list = ${LIST_OF} and id in (select value from json_each(?))`),
    run: db.prepare<[Record<string, string | number | null>], Run>(`
      update runs set cursor = :next, phase = iif(:next is null, 'deletions', 'pages'), pages = pages + 1,
        records = records + :records, skipped = skipped + :skipped, stored = stored + :stored,
        attempt = 0, own_tries = 0, own_since = null, waits = 0, stuck_since = null, error = null
      where instance_id = :instanceId and resource = :resource and fence = :fence
        and exists (select 1 from instances where id = :instanceId and status = 'active')
      returning *`),
    insert: db.prepare<InsertRow>(insertRows(1)),
    insertMany: db.prepare<(string | number | Buffer)[]>(insertRows(ROWS_AT_ONCE)),
    update: db.prepare<[hash: string, now: number, document: Buffer, seq: number]>(`
      update records set hash = ?, updated_at = ?, document = cast(? as text), deleted_at = null where seq = ?`),
    queue: db.prepare(QUEUE_FOR_SEARCH),
    // Ranges neither overlap nor touch: those that begin within a new one, or behind its end, become part of it, and it
    // becomes part of the one that it begins in, or goes on where that ends. The parameters stand apart, as SQLite would
    // plan a search by them anew whenever they are bound, which takes ten times as long as the rest.
    absorb: db.prepare<[{ list: number; first: number; last: number }], { last: number }>(`
      delete from seen_ranges
      where list = (select :list) and first > (select :first) and first <= (select :last + 1)
      returning last`),
    see: db.prepare<[{ list: number; first: number; last: number }]>(`
      with fresh (list, first, last) as (values (:list, :first, :last))
      insert into seen_ranges (list, first, last)
      select list, coalesce((
        select iif(seen.last >= fresh.first - 1, seen.first, null) from seen_ranges as seen
        where seen.list = fresh.list and seen.first <= fresh.first
        order by seen.first desc limit 1), first), last
      from fresh where true
      on conflict (list, first) do update set last = max(last, excluded.last)`),
  };
}
