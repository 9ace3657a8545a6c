import type { Selectable } from 'kysely';
import type { Database } from './database.ts';
import { countStates, type StateCounts } from './figures.ts';
import { raiseFences } from './runs.ts';
import type { InstanceTable } from './schema.ts';
import type { InstanceState } from './states.ts';

export type Instance = Selectable<InstanceTable>;

/** The table of instances. */
export class InstanceStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(id: string): Promise<Instance | undefined> {
    return this.#db.selectFrom('instances').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** Some of all, the oldest first. */
  list({ offset, limit }: { offset: number; limit: number }): Promise<Instance[]> {
    const all = this.#db.selectFrom('instances').selectAll().orderBy('installed_at').orderBy('id');
    return all.limit(limit).offset(offset).execute();
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
      if (numUpdatedRows > 0n && status !== 'active') await raiseFences(this.#db, transaction, id);
      return numUpdatedRows > 0n;
    });
  }
}
