import type { Kysely } from 'kysely';
import { Store } from './database.ts';
import { notePurge } from './erasure.ts';
import type { Schema } from './schema.ts';

/** Records that one transaction removes. */
const PORTION = 500;

/** Tables whose rows belong to a list, besides its records. */
const TABLES_OF_A_LIST = ['rejected_records', 'consumers', 'dead_letters', 'runs', 'days'] as const;

/** Begins to remove the copy of an instance: nothing shows its lists any more, and a new install makes others. */
export async function beginRemoval(db: Kysely<Schema>, instanceId: string, now: number): Promise<void> {
  const lists = db.updateTable('lists').set({ removed_at: now }).where('instance_id', '=', instanceId);
  await lists.where('removed_at', 'is', null).execute();
}

/** Removing copies, in portions, so that runs write their pages in between. */
export class RemovalStore extends Store {
  /** Finishes the removals that were begun, of one instance or of all. A purge is due then. */
  async finish(instanceId?: string, signal?: AbortSignal): Promise<void> {
    const lists = await this.db
      .selectFrom('lists')
      .select('id')
      .where('removed_at', 'is not', null)
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .execute();
    for (const { id } of lists) while (!signal?.aborted && (await this.#removePortion(id)));
  }

  /** @returns false when nothing is left of the list */
  #removePortion(list: number): Promise<boolean> {
    return this.db.transact(async (tx) => {
      const rows = await tx
        .selectFrom('records')
        .select('id')
        .where('list', '=', list)
        .limit(PORTION)
        .execute();
      const ids = rows.map(({ id }) => id);
      if (ids.length > 0) {
        await this.db.dialect.search.remove(tx, ids);
        await tx.deleteFrom('seen').where('list', '=', list).where('record', 'in', ids).execute();
        await tx.deleteFrom('records').where('id', 'in', ids).execute();
        return true;
      }
      for (const table of TABLES_OF_A_LIST) await tx.deleteFrom(table).where('list', '=', list).execute();
      await tx.deleteFrom('lists').where('id', '=', list).execute();
      await notePurge(this.db, tx);
      return false;
    });
  }
}
