import { Store } from './database.ts';
import type { ActionTable } from './schema.ts';

/** How long actions are kept, in milliseconds. */
const KEPT_MS = 365 * 24 * 60 * 60_000;

/** Pauses that a page looks through. */
const MOST_PAUSES = 1_000;

/** An action of a person on an instance, a list or a record. */
interface NewAction extends Pick<ActionTable, 'resource' | 'record' | 'action' | 'by'> {
  instanceId: string;
}

export interface Action extends NewAction {
  id: number;
  /** The name of the instance's company. */
  company: string | null;
  /** Milliseconds since 1970. */
  at: number;
}

export class ActionStore extends Store {
  async add({ instanceId, ...action }: NewAction, now = Date.now()): Promise<void> {
    const row = { ...action, instance_id: instanceId, at: now };
    await this.db.durably((tx) => tx.insertInto('actions').values(row).execute());
  }

  /** The last actions, of one instance or of all, the newest first. */
  list({ instanceId, limit }: { instanceId?: string; limit: number }): Promise<Action[]> {
    return this.db
      .selectFrom('actions')
      .leftJoin('instances', 'instances.id', 'actions.instance_id')
      .select(['actions.id', 'instance_id as instanceId', 'resource', 'record', 'action', 'by', 'at'])
      .select('instances.name as company')
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .orderBy('actions.id', 'desc')
      .limit(limit)
      .execute();
  }

  /** The pauses of some instances and their lists, the newest first. */
  pauses(instanceIds: readonly string[]): Promise<Pick<Action, 'instanceId' | 'resource' | 'by' | 'at'>[]> {
    return this.db
      .selectFrom('actions')
      .select(['instance_id as instanceId', 'resource', 'by', 'at'])
      .where('action', '=', 'pause')
      .where('instance_id', 'in', ['', ...instanceIds])
      .orderBy('id', 'desc')
      .limit(MOST_PAUSES)
      .execute();
  }

  /** Removes the actions of more than a year ago. */
  async removeOld(now: number): Promise<void> {
    const before = now - KEPT_MS;
    await this.db.transact((tx) => tx.deleteFrom('actions').where('at', '<', before).execute());
  }
}
