import { type Kysely, sql } from 'kysely';
import { type Database, lockList, nextSeq } from './database.ts';
import { holdsRun, type RunClaim } from './runs.ts';
import type { Schema } from './schema.ts';

/** Rows of `seen` that one statement looks at, for a few milliseconds. */
const LOOKED_AT = 20_000;

/** Records that are marked in one transaction. */
const PORTION = 500;

const BEHIND_ALL = Number.MAX_SAFE_INTEGER;

/** Marking the records that whole runs did not see. */
export class DeletionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** How many live records of a list no run has seen since the one with this id. */
  async countUnseen(list: number, beforeRun: number): Promise<number> {
    let count = 0;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const end = await this.#endOfPortion(list, after);
      const row = await this.#unseen(list, beforeRun, after, end)
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      count += Number(row.count);
      after = end;
    }
    return count;
  }

  /**
   * Marks some of the records of a list as deleted that no run has seen since the one with this id.
   *
   * @param claim of the run that does so, if one does
   * @param counter the run that counts them
   * @param after where the portion before ended, or 0
   * @returns where the next portion goes on; undefined behind the last one; `lost` when the claim does not hold
   */
  async markPortion(
    list: number,
    { beforeRun, counter, claim }: { beforeRun: number; counter: number; claim?: RunClaim },
    after: number,
    now: number,
  ): Promise<{ marked: number; next: number | undefined } | 'lost'> {
    const end = await this.#endOfPortion(list, after);
    const found = await this.#unseen(list, beforeRun, after, end)
      .select('record')
      .orderBy('record')
      .limit(PORTION)
      .execute();
    const last = found.at(-1)?.record;
    if (last === undefined) return { marked: 0, next: end };
    const isMarked = await this.#db.transact(async (transaction) => {
      const row = await lockList(this.#db, transaction, list);
      if (row === undefined || (claim !== undefined && !(await holdsRun(transaction, claim)))) return false;
      const base = nextSeq(row.change_seq);
      // Read again: another run may have seen one of them in between.
      const marked = this.#unseen(list, beforeRun, after, last, transaction)
        .select(['record', sql<number>`row_number() over (order by record)`.as('place')])
        .as('marked');
      const { numUpdatedRows } = await transaction
        .updateTable('records')
        .from(marked)
        .set({ deleted_at: now, change_seq: sql<number>`${sql.lit(base - 1)} + place` })
        .whereRef('records.id', '=', 'marked.record')
        .executeTakeFirst();
      const count = Number(numUpdatedRows);
      if (count === 0) return true;
      await transaction
        .deleteFrom('seen')
        .where('list', '=', list)
        .where('record', '>', after)
        .where('record', '<=', last)
        .where('run', '<', beforeRun)
        .execute();
      await transaction
        .updateTable('lists')
        .set({ change_seq: base - 1 + count, stored: row.stored - count })
        .where('id', '=', list)
        .execute();
      await transaction
        .updateTable('runs')
        .set((old) => ({ deleted: old('deleted', '+', count) }))
        .where('id', '=', counter)
        .execute();
      return true;
    });
    if (!isMarked) return 'lost';
    return { marked: found.length, next: found.length === PORTION ? last : end };
  }

  /** The last record of a portion; undefined when it goes to the end of the list. */
  async #endOfPortion(list: number, after: number): Promise<number | undefined> {
    const row = await this.#db
      .selectFrom('seen')
      .select('record')
      .where('list', '=', list)
      .where('record', '>', after)
      .orderBy('record')
      .limit(1)
      .offset(LOOKED_AT - 1)
      .executeTakeFirst();
    return row?.record;
  }

  #unseen(list: number, beforeRun: number, after: number, end = BEHIND_ALL, db: Kysely<Schema> = this.#db) {
    return db
      .selectFrom('seen')
      .where('list', '=', list)
      .where('record', '>', after)
      .where('record', '<=', end)
      .where('run', '<', beforeRun);
  }
}
