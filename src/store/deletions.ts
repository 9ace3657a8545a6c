import type { Database } from './database.ts';
import { activeInstance } from './pages.ts';
import type { Run, RunClaim } from './runs.ts';

/** A record that the run did not see. */
export interface UnseenRecord {
  id: string;
  document: string;
}

/** Marking what a run that went from the first page to the last did not see. */
export class DeletionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Some of the records that the run did not see and that are not marked yet. */
  unseen(run: Run, limit: number): Promise<UnseenRecord[]> {
    return this.#db
      .selectFrom('records')
      .select(['id', 'document'])
      .where('instance_id', '=', run.instance_id)
      .where('resource', '=', run.resource)
      .where('generation', '<', run.generation)
      .where('deleted_at', 'is', null)
      .limit(limit)
      .execute();
  }

  /**
   * Marks records as deleted, in one transaction with the run's count, if the claim is still the newest.
   *
   * @param now milliseconds since 1970
   * @returns false when the run is somebody else's now, or the instance is not active any more
   */
  mark(claim: RunClaim, ids: readonly string[], now: number): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      const held = await transaction
        .updateTable('runs')
        .set((old) => ({ deleted: old('deleted', '+', ids.length), attempt: 0, error: null }))
        .where('instance_id', '=', claim.instanceId)
        .where('resource', '=', claim.resource)
        .where('fence', '=', claim.fence)
        .where((where) => where.exists(activeInstance(claim.instanceId)))
        .executeTakeFirst();
      if (held.numUpdatedRows === 0n) return false;
      await transaction
        .updateTable('records')
        .set({ deleted_at: now })
        .where('instance_id', '=', claim.instanceId)
        .where('resource', '=', claim.resource)
        .where('id', 'in', [...ids])
        .execute();
      return true;
    });
  }
}
