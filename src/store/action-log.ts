import type { Database } from './database.ts';
import type { ActionTable } from './schema.ts';

/** How long actions are kept, in milliseconds. */
const KEPT_MS = 365 * 24 * 60 * 60_000;

/** What somebody did to an instance, or to a list or a record of it. */
export interface NewAction extends Pick<ActionTable, 'resource' | 'record' | 'action' | 'by'> {
  instanceId: string;
}

export interface Action extends NewAction {
  id: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** What administrators and operators did. */
export class ActionStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add({ instanceId, resource, record, action, by }: NewAction, now = Date.now()): Promise<void> {
    const row = { instance_id: instanceId, resource, record, action, by, at: now };
    await this.#db.durably((transaction) => transaction.insertInto('actions').values(row).execute());
  }

  /** The last actions, of one instance or of all, the newest first. */
  list({ instanceId, limit }: { instanceId?: string; limit: number }): Promise<Action[]> {
    return this.#db
      .selectFrom('actions')
      .select(['id', 'instance_id as instanceId', 'resource', 'record', 'action', 'by', 'at'])
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
  }

  /** Removes those of more than a year ago. */
  async removeOld(now: number): Promise<void> {
    await this.#db.transact((transaction) =>
      transaction
        .deleteFrom('actions')
        .where('at', '<', now - KEPT_MS)
        .execute(),
    );
  }
}
