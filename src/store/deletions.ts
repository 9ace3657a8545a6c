import type { Database } from './database.ts';
import { InDoubtStore } from './in-doubt.ts';
import { idDocument } from './page-items.ts';
import { ParkedStore, type Parking } from './parked-batches.ts';
import { PORTION_LENGTH, takePortion } from './portion.ts';
import { LIST_OF, type RunClaim, type RunKey } from './runs.ts';
import { QUEUE_FOR_SEARCH } from './search-index.ts';
import type { SeqRange } from './seq-ranges.ts';

/** A record that the run did not see. */
export interface UnseenRecord {
  seq: number;
  id: string;
  document: string;
}

/** Some of what a run did not see. */
export interface UnseenPortion {
  records: UnseenRecord[];
  /** Where the next portion goes on; null when there is nothing behind. */
  after: number | null;
}

/** A portion that finds nothing ends after so many ranges, so that others have their turn. */
const RANGES_AT_ONCE = 1_000;

const BEYOND_ALL = Number.MAX_SAFE_INTEGER;

/** Marking what a run that went from the first page to the last did not see. */
export class DeletionStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #parked: ParkedStore;
  readonly #inDoubt: InDoubtStore;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#parked = new ParkedStore(db);
    this.#inDoubt = new InDoubtStore(db);
  }

  /**
   * Some of the records that the run did not see and that are not marked yet: only what lies between the ranges that
   * it saw is looked at.
   *
   * @param after where the portion before ended, or 0
   * @param limit how many at the most; fewer where they are large
   */
  unseen(key: RunKey, after: number, limit: number): Promise<UnseenPortion> {
    const { instanceId, resource } = key;
    const { range, gap } = this.#statements;
    return this.#db.atOnce(() => {
      const records: UnseenRecord[] = [];
      let length = 0;
      let at = after;
      for (let ranges = 0; ranges < RANGES_AT_ONCE; ranges++) {
        const next = range.get(instanceId, resource, at);
        const before = next?.first ?? BEYOND_ALL;
        if (before > at + 1) {
          const rows = gap.iterate(instanceId, resource, at, before, limit - records.length);
          const portion = takePortion(rows, length);
          records.push(...portion.rows);
          length = portion.length;
        }
        const isFull = records.length === limit || length >= PORTION_LENGTH;
        if (isFull) return { records, after: records.at(-1)?.seq ?? at };
        if (next === undefined) return { records, after: null };
        at = Math.max(at, next.last);
      }
      return { records, after: at };
    });
  }

  /** How many records the run has seen, each counted once. It reads all ranges: for now and then. */
  seenCount({ instanceId, resource }: RunKey): Promise<number> {
    return this.#db.atOnce(() => this.#statements.seen.get(instanceId, resource)?.count ?? 0);
  }

  /**
   * Marks records as deleted, in one transaction with the run's counts, if the claim is still the newest. They are in
   * doubt no more then.
   *
   * @param now milliseconds since 1970
   * @param parking given when the own logic has not taken the batch: it is parked in the same transaction
   * @returns false when the run is somebody else's now, or the instance is not active any more
   */
  mark(claim: RunClaim, seqs: number[], now: number, parking?: Parking): Promise<boolean> {
    const { instanceId, resource, fence } = claim;
    const { run, remove, queue } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const count = seqs.length;
      const marked = run.get({ count, instanceId, resource, fence });
      if (marked === undefined) return false;
      for (const seq of seqs) remove.run(now, seq);
      queue.run(marked.list, JSON.stringify(seqs), count);
      this.#inDoubt.settleSeqsNow(marked.list, fence, seqs);
      if (parking !== undefined) {
        this.#parked.parkNow(marked.list, { created: [], changed: [], deleted: seqs }, parking, now);
      }
      return true;
    });
  }

  /**
   * Notes that records are told as deleted which the own logic may have and the copy has not, if the claim is still the
   * newest: they are in doubt no more then.
   *
   * @param now milliseconds since 1970
   * @param parking given when the own logic has not taken the batch: it is parked in the same transaction, and the copy
   *   has the records as deleted ones from then on
   * @returns false when the run is somebody else's now, or the instance is not active any more
   */
  takeBack(claim: RunClaim, ids: readonly string[], now: number, parking?: Parking): Promise<boolean> {
    const { instanceId, resource, fence } = claim;
    const { run, insertDeleted } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const list = run.get({ count: 0, instanceId, resource, fence })?.list;
      if (list === undefined) return false;
      this.#inDoubt.settleNow(list, fence, ids);
      if (parking !== undefined) {
        const seqs = ids.flatMap((id) => insertDeleted.all(list, id, now, now, idDocument(id)));
        const deleted = seqs.map(({ seq }) => seq);
        this.#parked.parkNow(list, { created: [], changed: [], deleted }, parking, now);
      }
      return true;
    });
  }
}

function prepare(db: Database) {
  return {
    range: db.prepare<[instanceId: string, resource: string, after: number], SeqRange>(`
      select first, last from seen_ranges
      where list = ${LIST_OF} and first > ? order by first limit 1`),
    seen: db.prepare<[instanceId: string, resource: string], { count: number }>(`
      select coalesce(sum(last - first + 1), 0) as count from seen_ranges where list = ${LIST_OF}`),
    gap: db.prepare<[string, string, after: number, before: number, limit: number], UnseenRecord>(`
      select seq, id, document from records
      where list = ${LIST_OF} and deleted_at is null and seq > ? and seq < ?
      order by seq limit ?`),
    run: db.prepare<[Record<string, string | number>], { list: number }>(`
      update runs set deleted = deleted + :count, stored = stored - :count,
        attempt = 0, own_tries = 0, own_since = null, error = null
      where instance_id = :instanceId and resource = :resource and fence = :fence
        and exists (select 1 from instances where id = :instanceId and status = 'active')
      returning list`),
    remove: db.prepare<[now: number, seq: number]>('update records set deleted_at = ? where seq = ?'),
    queue: db.prepare(QUEUE_FOR_SEARCH),
    // A deleted one that the copy has stays as it was.
    insertDeleted: db.prepare<
      [list: number, id: string, now: number, deletedAt: number, document: string],
      { seq: number }
    >(`
      insert into records (list, id, hash, updated_at, deleted_at, document) values (?, ?, '', ?, ?, ?)
      on conflict (list, id) do update set deleted_at = deleted_at
      returning seq`),
  };
}
