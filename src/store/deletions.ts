import { type Kysely, sql } from 'kysely';
import { countRows, Store } from './database.ts';
import { type ListClaim, lockClaimed, lockList, nextSeq } from './lists.ts';
import type { Schema } from './schema.ts';

/** Rows of `seen` that one statement looks at, for a few milliseconds. */
const LOOKED_AT = 20_000;

/** Records that one transaction marks. */
const PORTION = 500;

/** A live record that a run has not seen. */
export interface UnseenRecord {
  record: number;
  /** As the copy knows it. */
  externalId: string;
}

/** Who marks records as deleted, and which. */
interface Marking {
  /** Records that no run has seen since the one with this id. */
  beforeRun: number;
  /** The run that counts them. */
  counter: number;
  /** The claim of the run that does so, if one does. */
  claim?: ListClaim;
}

/** Marking the records that full runs did not see. */
export class DeletionStore extends Store {
  /**
   * Finds the live records of a list that no run has seen since the one with this id.
   *
   * @param most returns so many of them, those first that have been missing longest
   */
  async findUnseen(
    list: number,
    beforeRun: number,
    most: number,
  ): Promise<{ count: number; oldest: UnseenRecord[] }> {
    let count = 0;
    let oldest: { record: number; run: number }[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const { portion, end } = await this.#portion(list, beforeRun, after);
      const inPortion = await countRows(portion);
      if (inPortion > 0 && most > 0) {
        const rows = await portion.select(['record', 'run']).orderBy('run').limit(most).execute();
        oldest = [...oldest, ...rows].toSorted((a, b) => a.run - b.run).slice(0, most);
      }
      count += inPortion;
      after = end;
    }
    const ids = oldest.map(({ record }) => record);
    const records = this.db.selectFrom('records').select(['id', 'external_id']);
    const named = await records.where('id', 'in', [0, ...ids]).execute();
    const names = new Map(named.map(({ id, external_id }) => [id, external_id]));
    return { count, oldest: ids.map((record) => ({ record, externalId: names.get(record) ?? '' })) };
  }

  /** The id, as the copy knows it, of a record that a run has seen. */
  async findSeen(list: number, run: number): Promise<string | undefined> {
    const found = await this.db
      .selectFrom('seen')
      .innerJoin('records', 'records.id', 'seen.record')
      .select('external_id')
      .where((eb) => eb.and({ 'seen.list': list, run }))
      .limit(1)
      .executeTakeFirst();
    return found?.external_id;
  }

  /**
   * Marks some of the records of a list as deleted that no run has seen since the one with this id.
   *
   * @param after the `next` of the portion before, or 0
   * @returns `next`: where the next portion begins, undefined after the last one; `lost` when the claim does not hold
   */
  async markPortion(
    list: number,
    marking: Marking,
    after: number,
    now: number,
  ): Promise<{ marked: number; next: number | undefined } | 'lost'> {
    const { portion, end } = await this.#portion(list, marking.beforeRun, after);
    const found = await portion.select('record').orderBy('record').limit(PORTION).execute();
    const records = found.map(({ record }) => record);
    if (records.length === 0) return { marked: 0, next: end };
    if (!(await this.markRecords(list, records, marking, now))) return 'lost';
    return { marked: records.length, next: records.length === PORTION ? records.at(-1) : end };
  }

  /** Marks these records as deleted, unless a run has seen them. @returns false when the claim does not hold */
  markRecords(
    list: number,
    records: readonly number[],
    { beforeRun, counter, claim }: Marking,
    now: number,
  ): Promise<boolean> {
    return this.db.transact(async (tx) => {
      const row = await (claim === undefined ? lockList(this.db, tx, list) : lockClaimed(this.db, tx, claim));
      if (row === undefined || (claim !== undefined && !(await hasReadAll(tx, claim)))) return false;
      const before = nextSeq(row.change_seq) - 1;
      const marked = tx
        .selectFrom('seen')
        .where('list', '=', list)
        .where('run', '<', beforeRun)
        .where('record', 'in', [...records])
        .select(['record', sql<number>`row_number() over (order by record)`.as('place')]);
      const gone = await tx
        .updateTable('records')
        .from(marked.as('marked'))
        .set({ deleted_at: now, change_seq: sql<number>`${sql.lit(before)} + place` })
        .whereRef('records.id', '=', 'marked.record')
        .returning('records.id')
        .execute();
      if (gone.length === 0) return true;
      const ids = gone.map(({ id }) => id);
      await tx.deleteFrom('seen').where('list', '=', list).where('record', 'in', ids).execute();
      const counts = { change_seq: before + gone.length, stored: row.stored - gone.length };
      await tx.updateTable('lists').set(counts).where('id', '=', list).execute();
      await tx
        .updateTable('runs')
        .set((old) => ({ deleted: old('deleted', '+', gone.length) }))
        .where('id', '=', counter)
        .execute();
      return true;
    });
  }

  /** The unseen records of a portion of a list. `end` is its last record; undefined at the end of the list. */
  async #portion(list: number, beforeRun: number, after: number) {
    const rest = this.db.selectFrom('seen').where('list', '=', list).where('record', '>', after);
    const ordered = rest.select('record').orderBy('record').limit(1);
    const end = (await ordered.offset(LOOKED_AT - 1).executeTakeFirst())?.record;
    const portion = rest.where('run', '<', beforeRun).where('record', '<=', end ?? Number.MAX_SAFE_INTEGER);
    return { portion, end };
  }
}

/** Whether the claim's run has read its list to the end. If not, a crash of the database took back its last page. */
async function hasReadAll(tx: Kysely<Schema>, { run }: ListClaim): Promise<boolean> {
  const found = tx.selectFrom('runs').select('id').where('id', '=', run);
  const whole = found.where('cursor', 'is', null).where('pages', '>', 0);
  return (await whole.executeTakeFirst()) !== undefined;
}
