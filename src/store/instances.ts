import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { Database } from './database.ts';
import { countStates, type StateCounts } from './figures.ts';
import { raiseFences } from './runs.ts';
import type { InstanceTable, Schema } from './schema.ts';
import type { InstanceState } from './states.ts';

export type Instance = Selectable<InstanceTable>;

/** A list that fails for less than this is being retried, in milliseconds. */
const SHORT_TROUBLE_MS = 2 * 60_000;

/** Which instances are looked for. */
export interface InstanceQuery {
  /** A part of the name, of the company's id or of the instance's, in any case. */
  search?: string;
  /** Those in this state, or those that somebody has to look after. */
  filter?: InstanceState | 'attention';
}

/** The table of instances. */
export class InstanceStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(id: string): Promise<Instance | undefined> {
    return this.#db.selectFrom('instances').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Some of those that are looked for, the oldest first. */
  list({ offset, limit, ...query }: InstanceQuery & { offset: number; limit: number }): Promise<Instance[]> {
    return this.#db
      .selectFrom('instances')
      .selectAll()
      .where((eb) => isSought(eb, query))
      .orderBy('installed_at')
      .orderBy('id')
      .limit(limit)
      .offset(offset)
      .execute();
  }

  async count(query: InstanceQuery): Promise<number> {
    const { count } = await this.#db
      .selectFrom('instances')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where((eb) => isSought(eb, query))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** How many of them, and of their runs, are in which state. */
  countStates(): Promise<StateCounts> {
    return countStates(this.#db);
  }

  /**
   * Moves an instance to another state. Unless that is `active`, workers that hold its runs cannot commit any more.
   *
   * @param options.from only from one of these states
   * @returns whether it was so
   */
  async setStatus(
    id: string,
    status: InstanceState,
    options: { from: readonly InstanceState[] },
  ): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('instances')
        .set({ status })
        .where('id', '=', id)
        .where('status', 'in', [...options.from])
        .executeTakeFirst();
      if (numUpdatedRows > 0n && status !== 'active')
        await raiseFences(this.#db, transaction, { instanceId: id });
      return numUpdatedRows > 0n;
    });
  }
}

function isSought(eb: ExpressionBuilder<Schema, 'instances'>, { search = '', filter }: InstanceQuery) {
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
  const holds = (column: 'name' | 'company_id' | 'id') =>
    sql<boolean>`lower(${eb.ref(`instances.${column}`)}) like lower(${pattern}) escape '\\'`;
  return eb.and([
    ...(search === '' ? [] : [eb.or([holds('name'), holds('company_id'), holds('id')])]),
    ...(filter === undefined
      ? []
      : [filter === 'attention' ? needsAttention(eb) : eb('status', '=', filter)]),
  ]);
}

/** The app has to be authorized again, or a list has failed, or fails, holds deletions, or has dead letters. */
function needsAttention(eb: ExpressionBuilder<Schema, 'instances'>) {
  const lists = eb
    .selectFrom('lists')
    .select('lists.id')
    .whereRef('lists.instance_id', '=', 'instances.id')
    .where('removed_at', 'is', null)
    .where((list) => {
      const runs = list
        .selectFrom('runs')
        .whereRef('runs.list', '=', 'lists.id')
        .orderBy('runs.id', 'desc')
        .limit(1);
      return list.or([
        list(runs.select('state'), '=', 'failed'),
        list('failing_since', '<=', Date.now() - SHORT_TROUBLE_MS),
        list(runs.select('held').where('state', '=', 'finished'), '>', 0),
        list('lists.id', 'in', list.selectFrom('dead_letters').select('list')),
      ]);
    });
  return eb.or([
    eb('status', '=', 'needs_reauthorization'),
    eb.and([eb('status', '!=', 'disconnected'), eb.exists(lists)]),
  ]);
}
