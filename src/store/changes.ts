import { type Selectable, sql, type Transaction } from 'kysely';
import { type Database, lockList, nextSeq } from './database.ts';
import type { List, ListKey, RunError } from './runs.ts';
import type { ConsumerTable, DeadLetterTable, Schema } from './schema.ts';

export type Consumer = Selectable<ConsumerTable>;
type DeadLetter = Selectable<DeadLetterTable>;

/** Records of one batch, and up to how many bytes of documents: a larger one comes alone. */
export const BATCH_RECORDS = 100;
const BATCH_BYTES = 8 * 1_024 * 1_024;

/** Pending changes are counted up to here. */
const MOST_COUNTED = 100_000;

/** One entry of a list's change feed: the newest form of a record. */
export interface FeedEntry {
  /** The record's number in the copy, and its id as the copy knows it. */
  record: number;
  id: string;
  seq: number;
  change: 'created' | 'changed' | 'deleted';
  /** The text as it came; null for a deleted record. */
  document: string | null;
}

/** A consumer with its list, as a worker holds it. */
export interface HeldConsumer extends Consumer {
  instanceId: string;
  companyId: string | null;
  resource: string;
}

/** A list that a consumer has not read to its end. */
export interface Lagging extends ListKey {
  consumer: string;
}

/** Change feeds: a list's records in the order of their last changes, and the consumers that read them. */
export class ChangeStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The entries of a list behind a number, in their order: a hundred, or eight megabytes, or one. */
  async read(list: number, after: number, limit = BATCH_RECORDS): Promise<FeedEntry[]> {
    const rows = await this.#db
      .selectFrom('records')
      .select(['id', 'external_id', 'change_seq', 'created_seq', 'deleted_at'])
      .select(sql<number>`case when deleted_at is null then octet_length(document) else 0 end`.as('bytes'))
      .where('list', '=', list)
      .where('change_seq', '>', after)
      .orderBy('change_seq')
      .limit(Math.min(limit, BATCH_RECORDS))
      .execute();
    let bytes = 0;
    const taken = rows.filter((row, at) => {
      bytes += row.bytes ?? 0;
      return at === 0 || bytes <= BATCH_BYTES;
    });
    const live = taken.filter(({ deleted_at }) => deleted_at === null).map(({ id }) => id);
    const documents = await this.#documents(live);
    const entries = taken.map((row): FeedEntry => {
      return {
        record: row.id,
        id: row.external_id,
        seq: row.change_seq,
        change: row.deleted_at !== null ? 'deleted' : row.created_seq > after ? 'created' : 'changed',
        document: documents.get(row.id) ?? null,
      };
    });
    // What is removed or erased in between is no entry any more.
    return entries.filter(({ change, document }) => change === 'deleted' || document !== null);
  }

  /** Makes a consumer's row, which begins before the first change. */
  async #add(list: number, consumer: string): Promise<void> {
    await this.#db.transact((transaction) =>
      transaction
        .insertInto('consumers')
        .values({ list, consumer })
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    );
  }

  /**
   * Takes a consumer over: its holder before cannot move the cursor any more.
   *
   * @param options.whileActive unless its instance is not active, or the list paused
   * @returns undefined where there is nothing to take
   */
  async claim(
    { instanceId, resource, consumer }: Lagging,
    { whileActive }: { whileActive: boolean },
  ): Promise<HeldConsumer | undefined> {
    const find = () =>
      this.#db
        .selectFrom('lists')
        .innerJoin('instances', 'instances.id', 'lists.instance_id')
        .leftJoin('consumers', (join) =>
          join.onRef('consumers.list', '=', 'lists.id').on('consumers.consumer', '=', consumer),
        )
        .select((eb) => [
          'lists.id',
          'instances.company_id',
          'consumers.fence',
          eb.and([eb('instances.status', '=', 'active'), eb('paused_at', 'is', null)]).as('isActive'),
        ])
        .where('lists.instance_id', '=', instanceId)
        .where('lists.resource', '=', resource)
        .where('lists.removed_at', 'is', null)
        .executeTakeFirst();
    let found = await find();
    if (found?.fence === null) {
      await this.#add(found.id, consumer);
      found = await find();
    }
    if (found === undefined || (whileActive && !found.isActive)) return undefined;
    const { id: list, company_id: companyId, fence } = found;
    // A pause since then has raised the fence.
    const held = await this.#db.transact((transaction) =>
      transaction
        .updateTable('consumers')
        .set((old) => ({ fence: old('fence', '+', 1) }))
        .where('list', '=', list)
        .where('consumer', '=', consumer)
        .where('fence', '=', fence)
        .returningAll()
        .executeTakeFirst(),
    );
    return held && { ...held, instanceId, companyId, resource };
  }

  find(list: number, consumer: string): Promise<Consumer | undefined> {
    return this.#db
      .selectFrom('consumers')
      .selectAll()
      .where('list', '=', list)
      .where('consumer', '=', consumer)
      .executeTakeFirst();
  }

  /** Whether the database can be worked with. */
  isWell(): Promise<boolean> {
    return this.#db.check().then(
      () => true,
      () => false,
    );
  }

  /** Whether a worker still holds a consumer. */
  async holds({ list, consumer, fence }: Consumer): Promise<boolean> {
    return (await this.find(list, consumer))?.fence === fence;
  }

  /**
   * Moves a consumer's cursor behind entries that it has taken, and deletes their dead letters.
   *
   * @param work runs in the same transaction
   * @returns the consumer as it is now; undefined, with nothing written, when another worker holds it, it was paused or
   *   set back, or the database has lost the commit before
   */
  deliver(
    held: HeldConsumer,
    entries: readonly FeedEntry[],
    work?: (transaction: Transaction<Schema>) => Promise<void>,
  ): Promise<HeldConsumer | undefined> {
    return this.#db.transact(async (transaction) => {
      const moved = await move(transaction, held, {
        cursor: entries.at(-1)?.seq ?? held.cursor,
        attempts: 0,
        not_before: null,
        failed_in_row: 0,
        error_kind: null,
        error_detail: null,
      });
      if (moved === undefined) return undefined;
      await work?.(transaction);
      const ids = entries.map(({ id }) => id);
      await transaction
        .deleteFrom('dead_letters')
        .where('list', '=', held.list)
        .where('consumer', '=', held.consumer)
        .where('external_id', 'in', ids)
        .execute();
      return { ...held, ...moved };
    });
  }

  /**
   * Notes that the record behind the cursor failed.
   *
   * @param tries how often it has failed by now
   * @returns false, with nothing written, when another worker holds the consumer, or it was paused or set back
   */
  async fail(
    held: HeldConsumer,
    entry: FeedEntry,
    error: RunError,
    { tries, notBefore }: { tries: number; notBefore: number },
  ): Promise<boolean> {
    const moved = await this.#db.transact((transaction) =>
      move(transaction, held, {
        attempts: tries,
        tried_seq: entry.seq,
        not_before: notBefore,
        error_kind: error.kind,
        error_detail: error.detail,
      }),
    );
    return moved !== undefined;
  }

  /** Makes a dead letter of the record behind the cursor, and moves on. */
  bury(
    held: HeldConsumer,
    entry: FeedEntry,
    error: RunError,
    now: number,
  ): Promise<HeldConsumer | undefined> {
    return this.#db.transact(async (transaction) => {
      const moved = await move(transaction, held, {
        cursor: entry.seq,
        attempts: 0,
        not_before: null,
        failed_in_row: held.failed_in_row + 1,
        error_kind: error.kind,
        error_detail: error.detail,
      });
      if (moved === undefined) return undefined;
      const letter = { error_kind: error.kind, error_detail: error.detail, at: now };
      await transaction
        .insertInto('dead_letters')
        .values({ ...letter, list: held.list, consumer: held.consumer, external_id: entry.id })
        .onConflict((conflict) => conflict.columns(['list', 'consumer', 'external_id']).doUpdateSet(letter))
        .execute();
      return { ...held, ...moved };
    });
  }

  /**
   * Lists that a consumer has not read to their end, and may now.
   *
   * @param options.whileActive of active instances alone, and none that is paused
   */
  async lagging(
    consumer: string,
    { now, whileActive }: { now: number; whileActive: boolean },
  ): Promise<Lagging[]> {
    const rows = await this.#db
      .selectFrom('lists')
      .innerJoin('instances', 'instances.id', 'lists.instance_id')
      .leftJoin('consumers', (join) =>
        join.onRef('consumers.list', '=', 'lists.id').on('consumers.consumer', '=', consumer),
      )
      .select(['lists.instance_id', 'lists.resource'])
      .where('lists.removed_at', 'is', null)
      .whereRef('lists.change_seq', '>', sql`coalesce(consumers.cursor, 0)`)
      .where((eb) => eb.or([eb('not_before', 'is', null), eb('not_before', '<=', now)]))
      .$if(whileActive, (query) =>
        query.where('instances.status', '=', 'active').where('paused_at', 'is', null),
      )
      .execute();
    return rows.map((row) => ({ instanceId: row.instance_id, resource: row.resource, consumer }));
  }

  /** How many changes of a list a consumer has not taken, as far as they are counted. */
  async countPending(list: Pick<List, 'id' | 'change_seq'>, cursor: number): Promise<number> {
    if (list.change_seq <= cursor) return 0;
    const { count } = await this.#db
      .selectFrom((from) =>
        from
          .selectFrom('records')
          .select('change_seq')
          .where('list', '=', list.id)
          .where('change_seq', '>', cursor)
          .orderBy('change_seq')
          .limit(MOST_COUNTED)
          .as('pending'),
      )
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Gives a consumer the whole list again. */
  async replayList(list: number, consumer: string): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction
        .updateTable('consumers')
        .set((old) => ({
          cursor: 0,
          fence: old('fence', '+', 1),
          attempts: 0,
          not_before: null,
          failed_in_row: 0,
        }))
        .where('list', '=', list)
        .where('consumer', '=', consumer)
        .execute(),
    );
  }

  /** Gives every consumer one record again, as it is. @returns false where there is no such record */
  replayRecord(list: number, id: string): Promise<boolean> {
    return this.#replayRecords(list, [id]);
  }

  /** Gives a consumer its dead letters again, and lets it try at once. @returns how many there were */
  async retry(list: number, consumer: string): Promise<number> {
    const letters = await this.#db
      .selectFrom('dead_letters')
      .select('external_id')
      .where('list', '=', list)
      .where('consumer', '=', consumer)
      .execute();
    await this.#db.durably((transaction) =>
      transaction
        .updateTable('consumers')
        .set({ attempts: 0, not_before: null, failed_in_row: 0 })
        .where('list', '=', list)
        .where('consumer', '=', consumer)
        .execute(),
    );
    for (let at = 0; at < letters.length; at += BATCH_RECORDS) {
      const portion = letters.slice(at, at + BATCH_RECORDS);
      await this.#replayRecords(
        list,
        portion.map(({ external_id }) => external_id),
      );
    }
    return letters.length;
  }

  #replayRecords(list: number, ids: readonly string[]): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const row = await lockList(this.#db, transaction, list);
      if (row === undefined) return false;
      const records = await transaction
        .selectFrom('records')
        .select('id')
        .where('list', '=', list)
        .where('external_id', 'in', [...ids])
        .execute();
      let seq = nextSeq(row.change_seq);
      for (const { id } of records) {
        await transaction.updateTable('records').set({ change_seq: seq++ }).where('id', '=', id).execute();
      }
      if (records.length === 0) return false;
      await transaction
        .updateTable('lists')
        .set({ change_seq: seq - 1 })
        .where('id', '=', list)
        .execute();
      return true;
    });
  }

  async countDeadLetters(list: number, consumer: string): Promise<number> {
    const { count } = await this.#db
      .selectFrom('dead_letters')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('list', '=', list)
      .where('consumer', '=', consumer)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** Dead letters of a consumer, the newest first. */
  deadLetters(list: number, consumer: string, limit: number): Promise<DeadLetter[]> {
    return this.#db
      .selectFrom('dead_letters')
      .selectAll()
      .where('list', '=', list)
      .where('consumer', '=', consumer)
      .orderBy('at', 'desc')
      .orderBy('external_id')
      .limit(limit)
      .execute();
  }

  async #documents(records: readonly number[]): Promise<Map<number, string | null>> {
    if (records.length === 0) return new Map();
    const rows = await this.#db
      .selectFrom('records')
      .select(['id', 'document'])
      .where('id', 'in', [...records])
      .execute();
    return new Map(rows.map(({ id, document }) => [id, document]));
  }
}

/** Writes a consumer's row if its holder still holds it, and its cursor is where the holder left it. */
function move(
  transaction: Transaction<Schema>,
  held: HeldConsumer,
  values: Partial<Omit<Consumer, 'list' | 'consumer' | 'fence'>>,
): Promise<Consumer | undefined> {
  return transaction
    .updateTable('consumers')
    .set(values)
    .where('list', '=', held.list)
    .where('consumer', '=', held.consumer)
    .where('fence', '=', held.fence)
    .where('cursor', '=', held.cursor)
    .returningAll()
    .executeTakeFirst();
}
