import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Database } from './database.ts';
import { PORTION_LENGTH } from './portion.ts';
import type { Schema } from './schema.ts';

/** How many records go at a time, so that pages are written in between; fewer where they are large. */
const PORTION = 500;

const LISTS = '(select list from runs where instance_id = ?)';

/**
 * Begins to remove the copy of an instance, within the transaction that ends its runs: else one of them would take a
 * record for known that is about to go, or what a new install has copied would go, too.
 */
export async function beginRemoval(transaction: Kysely<Schema>, instanceId: string): Promise<void> {
  await transaction
    .insertInto('removals')
    .values({ instance_id: instanceId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  for (const table of ['search_queue', 'parked_batches', 'in_doubt', 'quarantine'] as const) {
    await transaction
      .deleteFrom(table)
      .where('list', 'in', (lists) =>
        lists.selectFrom('runs').select('list').where('instance_id', '=', instanceId),
      )
      .execute();
  }
}

/**
 * Removing the copy of an instance, in portions. From the first moment on no run of the instance can be claimed, so that
 * none takes a record for known that is about to go; a removal that was broken off is finished by the workers.
 */
export class RemovalStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
  }

  /** Removes all that is left of an instance's copy, if its removal was begun and is not finished yet. */
  async finish(instanceId: string): Promise<void> {
    while (await this.#portion(instanceId)) await othersTurn();
  }

  /** Whether anything is kept of the instance's records, be it of deleted ones, or set aside. */
  hasAny(instanceId: string): Promise<boolean> {
    return this.#db.atOnce(() => this.#statements.any.get(instanceId) !== undefined);
  }

  /** Goes on with a removal that was begun. Returns false when there is none. */
  async resume(): Promise<boolean> {
    const begun = await this.#db.atOnce(() => this.#statements.begun.get());
    if (begun === undefined) return false;
    await this.#portion(begun.instance_id);
    return true;
  }

  /** Returns false when nothing is left. */
  #portion(instanceId: string): Promise<boolean> {
    const { isBegun, some, forget, remove, count, end } = this.#statements;
    return this.#db.writeAtOnce(() => {
      // Another process may have finished it, and a new install copied records since.
      if (isBegun.get(instanceId) === undefined) return false;
      const rows = some.all(instanceId, PORTION);
      let bytes = 0;
      for (const { seq, size } of rows) {
        forget.run(seq);
        remove.run(seq);
        bytes += size;
        // All of a record is read when it goes.
        if (bytes >= PORTION_LENGTH) return true;
      }
      if (rows.length === PORTION) return true;
      count.run(instanceId);
      end.run(instanceId);
      return false;
    });
  }
}

function prepare(db: Database) {
  return {
    begun: db.prepare<[], { instance_id: string }>('select instance_id from removals limit 1'),
    isBegun: db.prepare<[string]>('select 1 from removals where instance_id = ?'),
    some: db.prepare<[string, number], { seq: number; size: number }>(
      `select seq, octet_length(document) as size from records where list in ${LISTS} limit ?`,
    ),
    any: db.prepare<[string]>(`
      select 1 from runs where instance_id = ? and (
        exists (select 1 from records where records.list = runs.list)
        or exists (select 1 from parked_batches where parked_batches.list = runs.list)
        or exists (select 1 from in_doubt where in_doubt.list = runs.list)
        or exists (select 1 from quarantine where quarantine.list = runs.list)) limit 1`),
    forget: db.prepare<[number]>('delete from search where rowid = ?'),
    remove: db.prepare<[number]>('delete from records where seq = ?'),
    count: db.prepare<[string]>('update runs set stored = 0 where instance_id = ?'),
    end: db.prepare<[string]>('delete from removals where instance_id = ?'),
  };
}
