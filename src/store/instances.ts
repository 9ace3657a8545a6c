import { type ExpressionBuilder, type Kysely, type Selectable, sql } from 'kysely';
import { countRows, Store } from './database.ts';
import { countStates, failedLists, type StateCounts } from './figures.ts';
import { scheduleLists, stopLists } from './lists.ts';
import { UNFINISHED } from './outbox.ts';
import type { InstanceTable, Schema } from './schema.ts';
import type { InstanceState } from './states.ts';

export type Instance = Selectable<InstanceTable>;

/** A list that fails for less than this needs nobody's attention, in milliseconds. */
const SHORT_FAILURE_MS = 2 * 60_000;

/** Which instances a query finds. */
export interface InstanceQuery {
  /** A part of the name, of the company's id or of the instance's, in any case. */
  search?: string;
  /** Those in this state, or those that need a person. */
  filter?: InstanceState | 'attention';
}

/** The table of instances. */
export class InstanceStore extends Store {
  find(id: string): Promise<Instance | undefined> {
    return this.db.selectFrom('instances').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Some of the instances that a query finds, those first that need a person most, and then the oldest. */
  list({ offset, limit, ...query }: InstanceQuery & { offset: number; limit: number }): Promise<Instance[]> {
    return this.db
      .selectFrom('instances')
      .selectAll()
      .where((eb) => matches(this.db, eb, query))
      .orderBy((eb) => {
        const { authorization, failing, waiting } = troublesOf(this.db, eb);
        const urgency = eb.case().when(authorization).then(0).when(failing).then(1).when(waiting).then(2);
        return urgency.when('status', '!=', 'disconnected').then(3).else(4).end();
      })
      .orderBy('installed_at')
      .orderBy('id')
      .limit(limit)
      .offset(offset)
      .execute();
  }

  count(query: InstanceQuery): Promise<number> {
    return countRows(this.db.selectFrom('instances').where((eb) => matches(this.db, eb, query)));
  }

  /** How many instances, and lists of active ones, are in which state. */
  countStates(): Promise<StateCounts> {
    return countStates(this.db);
  }

  /** Notes that the service is asked for the name. @returns false if somebody else has asked since a moment */
  beginNaming(id: string, since: number, now: number): Promise<boolean> {
    return this.db.transact(async (tx) => {
      const asked = tx.updateTable('instances').set({ named_at: now }).where('id', '=', id);
      return (await asked.where('named_at', '<', since).executeTakeFirst()).numUpdatedRows > 0n;
    });
  }

  async rename(id: string, name: string): Promise<void> {
    await this.db.transact((tx) => tx.updateTable('instances').set({ name }).where('id', '=', id).execute());
  }

  /**
   * Moves an instance to another state. Unless that is `active`, workers that hold its runs cannot commit any more.
   *
   * @param options.from the states that it may leave
   * @returns whether it did
   */
  setStatus(
    id: string,
    status: InstanceState,
    { from }: { from: readonly InstanceState[] },
  ): Promise<boolean> {
    return this.db.durably(async (tx) => {
      const update = tx.updateTable('instances').set({ status }).where('id', '=', id);
      const { numUpdatedRows } = await update.where('status', 'in', [...from]).executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await (status === 'active'
        ? scheduleLists(tx, { instanceId: id })
        : stopLists(this.db, tx, { instanceId: id }));
      return true;
    });
  }
}

function matches(
  db: Kysely<Schema>,
  eb: ExpressionBuilder<Schema, 'instances'>,
  { search = '', filter }: InstanceQuery,
) {
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
  const holds = (column: 'name' | 'company_id' | 'id') =>
    sql<boolean>`lower(${eb.ref(`instances.${column}`)}) like lower(${pattern}) escape '\\'`;
  return eb.and([
    ...(search === '' ? [] : [eb.or([holds('name'), holds('company_id'), holds('id')])]),
    ...(filter === undefined
      ? []
      : [filter === 'attention' ? eb.or(Object.values(troublesOf(db, eb))) : eb('status', '=', filter)]),
  ]);
}

/** Why an instance needs a person: somebody has to authorize the app again, a list fails, or something waits for a word. */
function troublesOf(db: Kysely<Schema>, eb: ExpressionBuilder<Schema, 'instances'>) {
  // Each of these is read once, and not once an instance.
  const lists = db.selectFrom('lists').select('instance_id').where('removed_at', 'is', null);
  const failing = lists.where((list) => {
    const isLong = list('failing_since', '<=', Date.now() - SHORT_FAILURE_MS);
    return list.or([isLong, list('id', 'in', failedLists(db))]);
  });
  const held = lists.where('held', '>', 0);
  const letters = lists.where('id', 'in', db.selectFrom('dead_letters').select('list'));
  const writes = db.selectFrom('outbox').select('instance_id').where('state', 'in', ['refused', 'unknown']);
  const waiting = [held, letters, writes.where(UNFINISHED)].map((query) => eb('id', 'in', query));
  const isConnected = eb('status', '!=', 'disconnected');
  return {
    authorization: eb('status', '=', 'needs_reauthorization'),
    failing: eb.and([isConnected, eb('id', 'in', failing)]),
    waiting: eb.and([isConnected, eb.or(waiting)]),
  };
}
