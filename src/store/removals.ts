import type { Kysely } from 'kysely';
import type { Database } from './database.ts';
import type { Schema } from './schema.ts';

/** Records that go in one transaction. */
const PORTION = 500;

/** Tables whose rows belong to a list, besides its records. */
const OF_A_LIST = ['rejected_records', 'consumers', 'dead_letters'] as const;

/**
 * Begins to remove the copy of an instance: nothing shows its lists from here on, and a new install makes others.
 */
export async function beginRemoval(db: Kysely<Schema>, instanceId: string, now: number): Promise<void> {
  await db
    .updateTable('lists')
    .set({ removed_at: now })
    .where('instance_id', '=', instanceId)
    .where('removed_at', 'is', null)
    .execute();
}

/** Removing copies, in portions, so that pages are written in between. */
export class RemovalStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Finishes all removals that were begun; those of one instance if it is named. */
  async finish(instanceId?: string, signal?: AbortSignal): Promise<void> {
    const lists = await this.#db
      .selectFrom('lists')
      .select('id')
      .where('removed_at', 'is not', null)
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .execute();
    for (const { id } of lists) while (!signal?.aborted && (await this.#removePortion(id)));
    if (lists.length > 0 && !signal?.aborted) await this.#db.dialect.purge?.(this.#db);
  }

  /** @returns false when nothing is left of the list */
  #removePortion(list: number): Promise<boolean> {
    return this.#db.transact(async (transaction) => {
      const rows = await transaction
        .selectFrom('records')
        .select('id')
        .where('list', '=', list)
        .limit(PORTION)
        .execute();
      const records = rows.map(({ id }) => id);
      if (records.length > 0) {
        await this.#db.dialect.search.remove(transaction, records);
        await transaction
          .deleteFrom('seen')
          .where('list', '=', list)
          .where('record', 'in', records)
          .execute();
        await transaction.deleteFrom('records').where('id', 'in', records).execute();
        return true;
      }
      for (const table of OF_A_LIST) await transaction.deleteFrom(table).where('list', '=', list).execute();
      await transaction.deleteFrom('runs').where('list', '=', list).execute();
      await transaction.deleteFrom('lists').where('id', '=', list).execute();
      return false;
    });
  }
}
