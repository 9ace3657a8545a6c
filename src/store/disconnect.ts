import { endAccess } from './browsers.ts';
import type { Database } from './database.ts';
import { beginRemoval } from './removals.ts';
import { raiseFences } from './runs.ts';

/** How an instance is disconnected. */
export interface DisconnectOptions {
  /** The copy is to be removed: whoever finishes the removal takes it out afterwards. */
  deleteData?: boolean;
  /** The browser that goes on seeing what is left; without one, none does. */
  browserId?: string;
}

/**
 * Ends an instance's access in one transaction: its state, its tokens, its runs, and the access of other browsers.
 *
 * @returns false when there is no such instance
 */
export function disconnectInstance(
  db: Database,
  instanceId: string,
  { deleteData = false, browserId }: DisconnectOptions = {},
): Promise<boolean> {
  return db.durably(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('instances')
      .set({ status: 'disconnected', error_kind: null, error_detail: null })
      .where('id', '=', instanceId)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    // The row stays with a higher version: a refresh that is under way can store nothing, also behind a new install.
    await transaction
      .updateTable('tokens')
      .set((old) => ({ access_token: null, refresh_token: null, version: old('version', '+', 1) }))
      .where('instance_id', '=', instanceId)
      .execute();
    await endAccess(transaction, instanceId, browserId);
    const now = Date.now();
    await raiseFences(db, transaction, { instanceId, endedAt: now });
    if (deleteData) await beginRemoval(transaction, instanceId, now);
    return true;
  });
}
