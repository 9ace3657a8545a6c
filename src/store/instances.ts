import { type ExpressionBuilder, type Kysely, type Selectable, sql } from 'kysely';
import { countRows, Store } from './database.ts';
import { countStates, type StateCounts } from './figures.ts';
import { scheduleLists, stopLists } from './lists.ts';
import type { InstanceTable, Schema } from './schema.ts';
import type { InstanceState } from './states.ts';
import { readTroubles, TROUBLES, type Trouble, type TroubleRow, troublesOf, type Work } from './troubles.ts';

export type Instance = Selectable<InstanceTable>;

/** Which instances a query finds. */
export interface InstanceQuery {
  /** A part of the name, of the company's id or of the instance's, in any case. */
  search?: string;
  /** Those in this state, with this trouble, or with any. Those with a paused list are paused, too. */
  filter?: InstanceState | Trouble | 'attention';
  /** What troubles are of. */
  work: Work;
}

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
        const troubles = troublesOf(this.db, eb, query.work);
        const urgencies = TROUBLES.map((kind, at) => sql`when ${troubles[kind]} then ${sql.lit(at)}`);
        const last = sql.lit(TROUBLES.length);
        return sql`case ${sql.join(urgencies, sql` `)} when ${isPaused(this.db, eb)} then ${last}
          when status = 'disconnected' then ${last} + 2 else ${last} + 1 end`;
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

  /** The troubles of one instance, or of all, the worst first. */
  troubles(work: Work, id?: string): Promise<TroubleRow[]> {
    return readTroubles(this.db, work, id);
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
      const update = tx
        .updateTable('instances')
        .set({ status, status_since: Date.now() })
        .where('id', '=', id);
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
  { search = '', filter, work }: InstanceQuery,
) {
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
  const holds = (column: 'name' | 'company_id' | 'id') =>
    sql<boolean>`lower(${eb.ref(`instances.${column}`)}) like lower(${pattern}) escape '\\'`;
  const troubles = troublesOf(db, eb, work);
  const troubled = (kind: Trouble | 'attention') =>
    kind === 'attention' ? eb.or(Object.values(troubles)) : troubles[kind];
  return eb.and([
    ...(search === '' ? [] : [eb.or([holds('name'), holds('company_id'), holds('id')])]),
    ...(filter === undefined
      ? []
      : [
          isTrouble(filter)
            ? troubled(filter)
            : filter === 'paused'
              ? isPaused(db, eb)
              : eb('status', '=', filter),
        ]),
  ]);
}

function isTrouble(filter: string): filter is Trouble | 'attention' {
  return filter === 'attention' || TROUBLES.some((kind) => kind === filter);
}

/** Whether a company is paused, or a list of one that is active. */
function isPaused(db: Kysely<Schema>, eb: ExpressionBuilder<Schema, 'instances'>) {
  const lists = db.selectFrom('lists').select('instance_id').where('removed_at', 'is', null);
  const withPaused = eb('instances.id', 'in', lists.where('paused_at', 'is not', null));
  return eb.or([eb('status', '=', 'paused'), eb.and([eb('status', '=', 'active'), withPaused])]);
}
