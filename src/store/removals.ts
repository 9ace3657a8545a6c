import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Database } from './database.ts';
import { PORTION_LENGTH } from './portion.ts';
import type { Schema } from './schema.ts';

/** How many records go at a time, so that pages are written in between; fewer where they are large. */
const PORTION = 500;

/** How far a process is with the removal of a copy. */
interface Progress {
  instanceId: string;
  /** The lists in which not every document is overwritten yet, and the id behind which the first of them goes on. */
  lists: number[];
  id: string;
}

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
 *
 * SQLite overwrites what is deleted, but not what it leaves behind where it moves rows to other pages, as it does with
 * the neighbours of deleted ones. So every document is overwritten in its place before the first record goes.
 */
export class RemovalStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  #resumed: Progress | undefined;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
  }

  /** Removes all that is left of an instance's copy, if its removal was begun and is not finished yet. */
  async finish(instanceId: string): Promise<void> {
    const progress = await this.#begin(instanceId);
    while (await this.#portion(progress)) await othersTurn();
  }

  /** Whether anything is kept of the instance's records, be it of deleted ones, or set aside. */
  hasAny(instanceId: string): Promise<boolean> {
    return this.#db.atOnce(() => this.#statements.any.get(instanceId) !== undefined);
  }

  /** Goes on with a removal that was begun. Returns false when there is none. */
  async resume(): Promise<boolean> {
    const id = await this.#db.atOnce(() => this.#statements.begun.get()?.instance_id);
    if (this.#resumed?.instanceId !== id)
      this.#resumed = id === undefined ? undefined : await this.#begin(id);
    if (this.#resumed === undefined) return false;
    if (!(await this.#portion(this.#resumed))) this.#resumed = undefined;
    return true;
  }

  /** Whoever goes on with a removal begins at the first document: what is overwritten already is so once more. */
  async #begin(instanceId: string): Promise<Progress> {
    const lists = await this.#db.atOnce(() => this.#statements.lists.all(instanceId));
    return { instanceId, lists: lists.map(({ list }) => list), id: '' };
  }

  /** Returns false when nothing is left. */
  #portion(progress: Progress): Promise<boolean> {
    return this.#db.writeAtOnce(() => {
      // Another process may have finished it, and a new install copied records since.
      if (this.#statements.isBegun.get(progress.instanceId) === undefined) return false;
      return !this.#overwrite(progress) || this.#remove(progress.instanceId);
    });
  }

  /** Returns whether every document is overwritten. */
  #overwrite(progress: Progress): boolean {
    const { next, overwrite } = this.#statements;
    let bytes = 0;
    for (let left = PORTION; left > 0; ) {
      const [list] = progress.lists;
      if (list === undefined) return true;
      const rows = next.all(list, progress.id, left);
      for (const { id, seq, size } of rows) {
        overwrite.run(seq);
        progress.id = id;
        bytes += size;
        if (bytes >= PORTION_LENGTH) return false;
      }
      if (rows.length < left) {
        progress.lists.shift();
        progress.id = '';
      }
      left -= rows.length;
    }
    return false;
  }

  /** Returns false when nothing is left. */
  #remove(instanceId: string): boolean {
    const { some, forget, remove, count, end } = this.#statements;
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
  }
}

function prepare(db: Database) {
  return {
    begun: db.prepare<[], { instance_id: string }>('select instance_id from removals limit 1'),
    lists: db.prepare<[string], { list: number }>('select list from runs where instance_id = ?'),
    next: db.prepare<
      [list: number, after: string, limit: number],
      { id: string; seq: number; size: number }
    >(`
      select id, seq, octet_length(document) as size from records
      where list = ? and id > ? order by id limit ?`),
    // As long as it was, so that it stays in its place; and a record still, for whoever reads it until it goes.
    overwrite: db.prepare<[number]>(
      "update records set document = printf('{}%*s', octet_length(document) - 2, '') where seq = ?",
    ),
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
