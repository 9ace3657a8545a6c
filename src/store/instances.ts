import type { Selectable } from 'kysely';
import { isInGeneration } from './access-generation.ts';
import type { Database } from './database.ts';
import { countStates, type StateCounts } from './figures.ts';
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

  /** Whether the service has told of any of them which company it is. */
  async knowsCompanies(): Promise<boolean> {
    const known = this.#db.selectFrom('instances').select('id').where('company_id', 'is not', null);
    return (await known.limit(1).executeTakeFirst()) !== undefined;
  }

  /** In which generation browsers see an instance; undefined when there is none. */
  async accessGeneration(id: string): Promise<number | undefined> {
    const found = this.#db.selectFrom('instances').select('access_generation').where('id', '=', id);
    return (await found.executeTakeFirst())?.access_generation;
  }

  /**
   * Begins the next access generation of an instance: no session sees it any more but those that are let into this one.
   *
   * @param from only from this generation: whoever saw an earlier one must not end what others see by now
   * @returns the generation; undefined when there is no such instance, or it is in another generation
   */
  async endAccess(id: string, from: number): Promise<number | undefined> {
    const result = await this.#db.durably((transaction) =>
      transaction
        .updateTable('instances')
        .set((old) => ({ access_generation: old('access_generation', '+', 1) }))
        .where('id', '=', id)
        .where('access_generation', '=', from)
        .returning('access_generation')
        .executeTakeFirst(),
    );
    return result?.access_generation;
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
   * Moves an instance to another state.
   *
   * @param options.from only from one of these states
   * @param options.generation only in this access generation
   * @returns whether it was so
   */
  async setStatus(
    id: string,
    status: InstanceState,
    options: { from: readonly InstanceState[]; notice?: string; generation?: number | undefined },
  ): Promise<boolean> {
    const result = await this.#db.durably((transaction) =>
      transaction
        .updateTable('instances')
        .set({ status, notice: options.notice ?? null })
        .where('id', '=', id)
        .where('status', 'in', [...options.from])
        .where((eb) => isInGeneration(eb, options.generation))
        .executeTakeFirst(),
    );
    return result.numUpdatedRows > 0n;
  }
}
