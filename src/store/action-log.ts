import { Store } from './database.ts';
import type { ActionTable } from './schema.ts';

/** How long actions are kept, in milliseconds. */
const KEPT_MS = 365 * 24 * 60 * 60_000;

/** An action of a person on an instance, a list or a record. */
interface NewAction extends Pick<ActionTable, 'resource' | 'record' | 'action' | 'by'> {
  instanceId: string;
}

export interface Action extends NewAction {
  id: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** The actions of administrators and operators. */
export class ActionStore extends Store {
  async add({ instanceId, ...action }: NewAction, now = Date.now()): Promise<void> {
    const row = { ...action, instance_id: instanceId, at: now };
    await this.db.durably((tx) => tx.insertInto('actions').values(row).execute());
  }

  /** The last actions, of one instance or of all, the newest first. */
  list({ instanceId, limit }: { instanceId?: string; limit: number }): Promise<Action[]> {
    return this.db
      .selectFrom('actions')
      .select(['id', 'instance_id as instanceId', 'resource', 'record', 'action', 'by', 'at'])
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
  }

  /** Removes the actions of more than a year ago. */
  async removeOld(now: number): Promise<void> {
    const before = now - KEPT_MS;
    await this.db.transact((tx) => tx.deleteFrom('actions').where('at', '<', before).execute());
  }
}
