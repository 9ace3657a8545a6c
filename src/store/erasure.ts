import { type Kysely, sql } from 'kysely';
import { type Database, lockList, nextSeq } from './database.ts';
import type { Schema } from './schema.ts';

/** Documents that one transaction erases. */
const PORTION = 500;

const NO_DOCUMENT = { document: null, hash: null } as const;

/** Erasing what records say. */
export class ErasureStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Erases a record for good, and tells all consumers that it is deleted. Its row stays, so that no page brings it back.
   *
   * @param id as the copy knows it
   * @returns false where there is no such record, or it is erased already
   */
  erase(list: number, id: string, now: number): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const row = await lockList(this.#db, transaction, list);
      if (row === undefined) return false;
      const seq = nextSeq(row.change_seq);
      const record = await transaction
        .updateTable('records')
        .set({ ...NO_DOCUMENT, erased_at: now, change_seq: seq })
        .set('deleted_at', sql<number>`coalesce(deleted_at, ${now})`)
        .where('list', '=', list)
        .where('external_id', '=', id)
        .where('erased_at', 'is', null)
        .returning('id')
        .executeTakeFirst();
      if (record === undefined) return false;
      const { numDeletedRows: live } = await transaction
        .deleteFrom('seen')
        .where('list', '=', list)
        .where('record', '=', record.id)
        .executeTakeFirst();
      await this.#forget(transaction, list, [{ id: record.id, external_id: id }]);
      await transaction
        .updateTable('actions')
        .set({ record: null })
        .where('record', '=', id)
        .where('instance_id', '=', (from) =>
          from.selectFrom('lists').select('instance_id').where('lists.id', '=', list),
        )
        .execute();
      // A consumer that has the document now writes nothing of it; and what it last said may quote it.
      await transaction
        .updateTable('consumers')
        .set((old) => ({ fence: old('fence', '+', 1), error_kind: null, error_detail: null }))
        .where('list', '=', list)
        .execute();
      await transaction
        .updateTable('lists')
        .set({ change_seq: seq, stored: row.stored - Number(live) })
        .where('id', '=', list)
        .execute();
      return true;
    });
  }

  /**
   * Erases the documents of records that were deleted up to a moment. One that returns at the service is copied anew.
   *
   * @param until milliseconds since 1970
   * @returns how many there were
   */
  async eraseDeleted(until: number, signal?: AbortSignal): Promise<number> {
    let erased = 0;
    while (!signal?.aborted) {
      const found = await this.#db
        .selectFrom('records')
        .innerJoin('lists', 'lists.id', 'records.list')
        .select(['records.id', 'list'])
        .where('deleted_at', 'is not', null)
        .where('deleted_at', '<=', until)
        .where('document', 'is not', null)
        .where('removed_at', 'is', null)
        .orderBy('deleted_at')
        .limit(PORTION)
        .execute();
      if (found.length === 0) break;
      for (const [list, records] of Map.groupBy(found, (row) => row.list)) {
        const ids = records.map(({ id }) => id);
        erased += await this.#erasePortion(list, ids, until);
      }
    }
    return erased;
  }

  /** Takes what was erased out of the database's files, where the database itself does not. */
  async purge(): Promise<void> {
    await this.#db.dialect.purge?.(this.#db);
  }

  #erasePortion(list: number, ids: readonly number[], until: number): Promise<number> {
    return this.#db.transact(async (transaction) => {
      await lockList(this.#db, transaction, list);
      // One of them may have come back meanwhile.
      const erased = await transaction
        .updateTable('records')
        .set(NO_DOCUMENT)
        .where('id', 'in', [...ids])
        .where('deleted_at', '<=', until)
        .returning(['id', 'external_id'])
        .execute();
      if (erased.length > 0) await this.#forget(transaction, list, erased);
      return erased.length;
    });
  }

  /** Removes what the search index and the dead letters tell of records. */
  async #forget(
    transaction: Kysely<Schema>,
    list: number,
    records: readonly { id: number; external_id: string }[],
  ): Promise<void> {
    await this.#db.dialect.search.remove(
      transaction,
      records.map(({ id }) => id),
    );
    await transaction
      .deleteFrom('dead_letters')
      .where('list', '=', list)
      .where(
        'external_id',
        'in',
        records.map(({ external_id }) => external_id),
      )
      .execute();
  }
}
