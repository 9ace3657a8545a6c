import { type Kysely, sql } from 'kysely';
import { countRows, Store } from './database.ts';
import { lockList, nextSeq } from './lists.ts';
import { holdsRun, type RunClaim } from './runs.ts';
import type { Schema } from './schema.ts';

/** Rows of `seen` that one statement looks at, for a few milliseconds. */
const LOOKED_AT = 20_000;

/** Records that one transaction marks. */
const PORTION = 500;

/** Marking the records that whole runs did not see. */
export class DeletionStore extends Store {
  /** How many live records of a list no run has seen since the one with this id. */
  async countUnseen(list: number, beforeRun: number): Promise<number> {
    let count = 0;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const end = await this.#endOfPortion(list, after);
      count += await countRows(unseen(this.db, list, beforeRun, { after, end }));
      after = end;
    }
    return count;
  }

  /**
   * Marks some of the records of a list as deleted that no run has seen since the one with this id.
   *
   * @param claim of the run that does so, if one does
   * @param counter the run that counts them
   * @param after the `next` of the portion before, or 0
   * @returns `next`: where the next portion begins, undefined after the last one; `lost` when the claim does not hold
   */
  async markPortion(
    list: number,
    { beforeRun, counter, claim }: { beforeRun: number; counter: number; claim?: RunClaim },
    after: number,
    now: number,
  ): Promise<{ marked: number; next: number | undefined } | 'lost'> {
    const end = await this.#endOfPortion(list, after);
    const query = unseen(this.db, list, beforeRun, { after, end });
    const found = await query.select('record').orderBy('record').limit(PORTION).execute();
    const last = found.at(-1)?.record;
    if (last === undefined) return { marked: 0, next: end };
    const isMarked = await this.db.transact(async (tx) => {
      const row = await lockList(this.db, tx, list);
      if (row === undefined || (claim !== undefined && !(await holdsRun(tx, claim)))) return false;
      const before = nextSeq(row.change_seq) - 1;
      // Read again: another run may have seen one of them in between.
      const portion = unseen(tx, list, beforeRun, { after, end: last });
      const marked = portion.select(['record', sql<number>`row_number() over (order by record)`.as('place')]);
      const { numUpdatedRows } = await tx
        .updateTable('records')
        .from(marked.as('marked'))
        .set({ deleted_at: now, change_seq: sql<number>`${sql.lit(before)} + place` })
        .whereRef('records.id', '=', 'marked.record')
        .executeTakeFirst();
      const count = Number(numUpdatedRows);
      if (count === 0) return true;
      const gone = tx.deleteFrom('seen').where('list', '=', list).where('run', '<', beforeRun);
      await gone.where('record', '>', after).where('record', '<=', last).execute();
      const counts = { change_seq: before + count, stored: row.stored - count };
      await tx.updateTable('lists').set(counts).where('id', '=', list).execute();
      await tx
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
    const live = this.db.selectFrom('seen').select('record').where('list', '=', list);
    const rest = live.where('record', '>', after).orderBy('record');
    return (
      await rest
        .limit(1)
        .offset(LOOKED_AT - 1)
        .executeTakeFirst()
    )?.record;
  }
}

/** Live records after one and up to another that no run has seen since a run. */
function unseen(
  db: Kysely<Schema>,
  list: number,
  beforeRun: number,
  { after, end = Number.MAX_SAFE_INTEGER }: { after: number; end: number | undefined },
) {
  const seen = db.selectFrom('seen').where('list', '=', list).where('run', '<', beforeRun);
  return seen.where('record', '>', after).where('record', '<=', end);
}
