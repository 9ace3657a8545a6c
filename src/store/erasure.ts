import { randomUUID } from 'node:crypto';
import { type Kysely, sql, type Transaction } from 'kysely';
import { type Database, Store } from './database.ts';
import { lockList, nextSeq } from './lists.ts';
import { discardWrites, objectOf } from './outbox.ts';
import { recordId } from './page-items.ts';
import type { Schema } from './schema.ts';

/** Documents that one transaction erases. */
const PORTION = 500;

/** The setting that says that data is deleted which the files still hold. Its value changes with each deletion. */
const PURGE_DUE = 'purge_due';

const NO_DOCUMENT = { document: null, hash: null } as const;

/** Notes that the files hold deleted data: {@link ErasureStore.purge} takes it out. */
export async function notePurge({ dialect }: Database, tx: Transaction<Schema>): Promise<void> {
  if (dialect.purge === undefined) return;
  const value = randomUUID();
  await tx
    .insertInto('settings')
    .values({ name: PURGE_DUE, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute();
}

export class ErasureStore extends Store {
  /**
   * Erases a record for good, and tells all consumers that it is deleted. Its row stays, so that no page brings it back.
   *
   * @param id as the copy knows it
   * @param route of the list at the service: with it, writes to the record are discarded, too
   * @returns how many were; undefined where there is no such record, or it is erased already
   */
  erase(list: number, id: string, now: number, route?: string): Promise<number | undefined> {
    return this.db.durably(async (tx) => {
      const row = await lockList(this.db, tx, list);
      if (row === undefined) return undefined;
      const seq = nextSeq(row.change_seq);
      const record = await tx
        .updateTable('records')
        .set({ ...NO_DOCUMENT, erased_at: now, change_seq: seq })
        .set('deleted_at', sql<number>`coalesce(deleted_at, ${now})`)
        .where((eb) => eb.and({ list, external_id: id }))
        .where('erased_at', 'is', null)
        .returning(['id', 'external_id'])
        .executeTakeFirst();
      if (record === undefined) return undefined;
      const seen = tx.deleteFrom('seen').where((eb) => eb.and({ list, record: record.id }));
      const { numDeletedRows: live } = await seen.executeTakeFirst();
      await this.#forget(tx, list, [record]);
      await tx
        .updateTable('actions')
        .set({ record: null })
        .where((eb) => eb.and({ record: id, instance_id: row.instance_id }))
        .execute();
      // A consumer that has the document now cannot commit, and its last error may quote the document.
      await tx
        .updateTable('consumers')
        .set((old) => ({ fence: old('fence', '+', 1), error_kind: null, error_detail: null }))
        .where('list', '=', list)
        .execute();
      const counts = { change_seq: seq, stored: row.stored - Number(live) };
      await tx.updateTable('lists').set(counts).where('id', '=', list).execute();
      await notePurge(this.db, tx);
      if (route === undefined) return 0;
      const object = objectOf(`${route}/${encodeURIComponent(recordId(id))}`);
      return discardWrites(this.db, tx, row.instance_id, { object });
    });
  }

  /**
   * Erases the documents of records that were deleted up to a moment. A record that returns at the service is copied anew.
   *
   * @param until milliseconds since 1970
   * @returns how many there were
   */
  async eraseDeleted(until: number, signal?: AbortSignal): Promise<number> {
    let erased = 0;
    for (let count = PORTION; count === PORTION && !signal?.aborted; erased += count) {
      count = await this.#erasePortion(until);
    }
    return erased;
  }

  /** Takes erased data out of the database's files, where the database itself does not, if anything was erased. */
  async purge(): Promise<void> {
    const find = this.db.selectFrom('settings').selectAll().where('name', '=', PURGE_DUE);
    const due = await find.executeTakeFirst();
    if (due === undefined) return;
    await this.db.dialect.purge?.(this.db);
    // What was erased meanwhile is for the next time.
    await this.db.transact((tx) =>
      tx
        .deleteFrom('settings')
        .where((eb) => eb.and({ ...due }))
        .execute(),
    );
  }

  #erasePortion(until: number): Promise<number> {
    return this.db.transact(async (tx) => {
      const due = tx
        .selectFrom('records')
        .select('id')
        .where('deleted_at', 'is not', null)
        .where('document', 'is not', null)
        .where('deleted_at', '<=', until)
        .orderBy('deleted_at')
        .limit(PORTION);
      // A record that comes back meanwhile is not deleted any more.
      const erased = await tx
        .updateTable('records')
        .set(NO_DOCUMENT)
        .where('id', 'in', due)
        .where('deleted_at', '<=', until)
        .returning(['id', 'list', 'external_id'])
        .execute();
      for (const [list, records] of Map.groupBy(erased, (row) => row.list)) {
        await this.#forget(tx, list, records);
      }
      if (erased.length > 0) await notePurge(this.db, tx);
      return erased.length;
    });
  }

  /** Removes records from the search index and the dead letters. */
  async #forget(tx: Kysely<Schema>, list: number, records: readonly { id: number; external_id: string }[]) {
    const ids = records.map(({ id }) => id);
    await this.db.dialect.search.remove(tx, ids);
    const names = records.map(({ external_id }) => external_id);
    const letters = tx.deleteFrom('dead_letters').where('list', '=', list);
    await letters.where('external_id', 'in', names).execute();
  }
}
