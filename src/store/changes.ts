import { type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import { Store, statement } from './database.ts';
import { lockList, nextSeq } from './lists.ts';
import type { ListKey, RunError } from './runs.ts';
import type { ConsumerTable, DeadLetterTable, RecordTable, Schema } from './schema.ts';

type Consumer = Selectable<ConsumerTable>;

/** The readers of change feeds, by their names in the database: the fork's handler, and the search index. */
export const HANDLER_CONSUMER = 'handler';
export const SEARCH_CONSUMER = 'search';

type DeadLetter = Selectable<DeadLetterTable>;

/** Records of a batch, and the bytes of their documents. A larger document comes alone. */
export const BATCH_RECORDS = 100;
const BATCH_BYTES = 1_024 * 1_024;

/** Lists that one query for work finds. */
const LAGGING = 500;

/** Pending changes are counted up to here. */
const MOST_COUNTED = 100_000;

const NO_FAILURE = { attempts: 0, not_before: null, failed_in_row: 0 } as const;
const NO_ERROR = { error_kind: null, error_detail: null } as const;

/** Dead letters are tried again hourly for a day, so many of a list at a time. */
const RETRY_LETTERS = { everyMs: 60 * 60_000, forMs: 24 * 60 * 60_000, atOnce: 10 } as const;

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

/** A consumer with its list, as a delivery holds it. */
export interface HeldConsumer extends Consumer {
  instanceId: string;
  companyId: string | null;
  company: string;
  resource: string;
  /** Whether the delivery before it never ended. */
  isSuspect: boolean;
  /** Whether it may have dead letters. */
  hasLetters: boolean;
}

/** A consumer that cannot be taken now: it waits for a time, or must be taken alone. */
type Untaken =
  | { notBefore: number }
  /** Whether the record behind the cursor has ended the delivery process while it was alone. */
  | { isSuspect: true; wasCharged: boolean };

/** How far a consumer has come with a list, and the last error. */
export interface Progress extends Pick<Consumer, 'error_detail' | 'not_before'> {
  pending: number;
  deadLetters: number;
}

/** A list that a consumer has not read to its end. */
export interface Lagging extends ListKey {
  consumer: string;
}

type ReadRow = Pick<
  Selectable<RecordTable>,
  'id' | 'external_id' | 'change_seq' | 'created_seq' | 'deleted_at' | 'document'
>;

/** Change feeds: a list's records in the order of their last changes, and the consumers that read them. */
export class ChangeStore extends Store {
  readonly #read = statement<ReadRow>(
    this.db.dialect,
    `with entries as (
        select id, row_number() over (order by change_seq) as place,
          sum(case when deleted_at is null then octet_length(document) else 0 end)
            over (order by change_seq) as bytes
        from (select id, change_seq, deleted_at, document from records
          where list = :list and change_seq > :after order by change_seq limit :limit) as next)
      select records.id, external_id, change_seq, created_seq, deleted_at,
        case when deleted_at is null then document end as document
      from entries join records on records.id = entries.id
      where (bytes <= :bytes or place = 1) and (deleted_at is not null or document is not null)
      order by change_seq`,
  );

  /** The entries of a list after a number, in their order: at most a hundred, or a megabyte. */
  async read(list: number, after: number, limit = BATCH_RECORDS): Promise<FeedEntry[]> {
    const values = { list, after, limit: Math.min(limit, BATCH_RECORDS), bytes: BATCH_BYTES };
    const { rows } = await this.db.executeQuery(this.#read(values));
    return rows.map((row): FeedEntry => {
      const change = row.deleted_at !== null ? 'deleted' : row.created_seq > after ? 'created' : 'changed';
      return { record: row.id, id: row.external_id, seq: row.change_seq, change, document: row.document };
    });
  }

  /**
   * Takes a consumer over, and makes its row if it has none. Its earlier holder cannot move the cursor any more.
   *
   * @param options.whileActive skips instances that are not active, and paused lists
   * @param options.alone takes a suspect, too
   * @returns undefined when there is nothing to take
   */
  claim(
    { instanceId, resource, consumer }: Lagging,
    { whileActive, alone = false, now }: { whileActive: boolean; alone?: boolean; now: number },
  ): Promise<HeldConsumer | Untaken | undefined> {
    return this.db.transact(async (tx) => {
      const query = consumed(tx, consumer, whileActive)
        .selectAll('consumers')
        .select(['lists.id', 'instances.company_id', 'instances.name'])
        .where((eb) => eb.and({ 'lists.instance_id': instanceId, 'lists.resource': resource }));
      let found = await query.executeTakeFirst();
      if (found?.fence === null) {
        // A pause or a disconnect waits for the row that it cannot see yet.
        await lockList(this.db, tx, found.id);
        const row = { list: found.id, consumer };
        const added = tx.insertInto('consumers').values(row);
        await added.onConflict((conflict) => conflict.doNothing()).execute();
        found = await query.executeTakeFirst();
      }
      if (found === undefined) return undefined;
      const { id: list, company_id: companyId, name: company, fence, not_before: notBefore } = found;
      if (notBefore !== null && notBefore > now) return { notBefore };
      const isSuspect = found.begun_at !== null;
      if (isSuspect && !alone) {
        return { isSuspect, wasCharged: found.error_kind === 'handler_ended' && !!found.attempts };
      }
      // A pause in between has raised the fence.
      const held = await tx
        .updateTable('consumers')
        .set((old) => ({ fence: old('fence', '+', 1), begun_at: now }))
        .where((eb) => eb.and({ list, consumer }))
        .where('fence', '=', fence)
        .returningAll()
        .executeTakeFirst();
      if (held === undefined) return undefined;
      const letter = await lettersOf(tx, list, consumer).select('list').limit(1).executeTakeFirst();
      const hasLetters = letter !== undefined;
      return { ...held, instanceId, companyId, company, resource, isSuspect, hasLetters };
    });
  }

  /** Notes the orderly end of a delivery. */
  async end({ list, consumer, begun_at }: HeldConsumer): Promise<void> {
    await this.db.transact((tx) => {
      const ended = tx.updateTable('consumers').set({ begun_at: null, begun_to: null });
      return ended.where((eb) => eb.and({ list, consumer, begun_at })).execute();
    });
  }

  find(list: number, consumer: string): Promise<Consumer | undefined> {
    const found = this.db.selectFrom('consumers').selectAll();
    return found.where((eb) => eb.and({ list, consumer })).executeTakeFirst();
  }

  /** Whether the database takes writes. */
  isWell(): Promise<boolean> {
    return this.db.check().then(
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
   * The first success after dead letters makes these due again: an outage may have made them.
   *
   * @param work runs in the same transaction
   * @returns the consumer as it is now; undefined, with nothing written, when another worker holds it, somebody paused
   *   it or set it back, or a crash of the database took back the commit before
   */
  deliver(
    held: HeldConsumer,
    entries: readonly FeedEntry[],
    now: number,
    work?: (tx: Transaction<Schema>) => Promise<void>,
  ): Promise<HeldConsumer | undefined> {
    return this.db.transact(async (tx) => {
      const cursor = entries.at(-1)?.seq ?? held.cursor;
      const moved = await move(tx, held, { ...NO_FAILURE, ...NO_ERROR, cursor });
      if (moved === undefined) return undefined;
      await work?.(tx);
      const { list, consumer, failed_in_row } = held;
      const ids = entries.map(({ id }) => id);
      if (held.hasLetters) {
        const letters = tx.deleteFrom('dead_letters').where('external_id', 'in', ids);
        await letters.where((eb) => eb.and({ list, consumer })).execute();
      }
      if (failed_in_row > 0) {
        const ofOutage = { is_retried: 0, error_kind: 'handler' } as const;
        const last = lettersOf(tx, list, consumer)
          .where((eb) => eb.and(ofOutage))
          .orderBy('at', 'desc');
        await tx
          .updateTable('dead_letters')
          .set({ retry_at: now })
          .where((eb) => eb.and({ list, consumer }))
          .where('external_id', 'in', last.limit(failed_in_row).select('external_id'))
          .execute();
      }
      return { ...held, ...moved };
    });
  }

  /**
   * Notes that the record behind the cursor failed, or that a suspect's call begins, which may end the process.
   *
   * @param tries how often it has failed by now
   * @param begunTo the end of a suspect's batch
   * @returns the consumer as it is now; undefined in the cases of {@link deliver}
   */
  fail(
    held: HeldConsumer,
    { seq }: FeedEntry,
    { kind, detail }: RunError,
    { tries, notBefore, begunTo }: { tries: number; notBefore: number; begunTo?: number },
  ): Promise<HeldConsumer | undefined> {
    const failure = { attempts: tries, tried_seq: seq, not_before: notBefore };
    const batch = begunTo === undefined ? {} : { begun_to: begunTo };
    const values = { ...failure, ...batch, error_kind: kind, error_detail: detail };
    return this.db.transact(async (tx) => {
      const moved = await move(tx, held, values);
      return moved && { ...held, ...moved };
    });
  }

  /** Writes how the delivery process ended, where a suspect's call was under way. */
  async noteEnd({ instanceId, resource, consumer }: Lagging, detail: string): Promise<void> {
    await this.db.transact((tx) =>
      tx
        .updateTable('consumers')
        .set({ error_detail: detail })
        .where('list', 'in', (eb) => {
          const lists = eb.selectFrom('lists').select('id').where('instance_id', '=', instanceId);
          return lists.where('resource', '=', resource);
        })
        .where((eb) => eb.and({ consumer, error_kind: 'handler_ended' as const }))
        .where('begun_at', 'is not', null)
        .execute(),
    );
  }

  /** Whether the consumer has a dead letter again: one failure makes it a dead letter again. */
  async isRetried({ list, consumer }: Consumer, { id }: FeedEntry): Promise<boolean> {
    const letter = lettersOf(this.db, list, consumer).select('list').where('is_retried', '=', 1);
    return (await letter.where('external_id', '=', id).executeTakeFirst()) !== undefined;
  }

  /**
   * Makes a dead letter of the record behind the cursor, and moves on.
   *
   * @param isRetried it was one: its day goes on, and it does not count in a row
   */
  bury(
    held: HeldConsumer,
    { id, seq }: FeedEntry,
    { kind, detail }: RunError,
    now: number,
    isRetried = false,
  ): Promise<HeldConsumer | undefined> {
    return this.db.transact(async (tx) => {
      const { list, consumer } = held;
      const error = { error_kind: kind, error_detail: detail };
      const failed_in_row = held.failed_in_row + (isRetried ? 0 : 1);
      const noted = isRetried ? NO_ERROR : error;
      const moved = await move(tx, held, { ...NO_FAILURE, ...noted, cursor: seq, failed_in_row });
      if (moved === undefined) return undefined;
      const retryAt = now + RETRY_LETTERS.everyMs;
      const letter = { ...error, at: now, is_retried: 0 } as const;
      const plan = { retry_at: retryAt, retry_until: now + RETRY_LETTERS.forMs };
      await tx
        .insertInto('dead_letters')
        .values({ ...letter, ...plan, list, consumer, external_id: id })
        .onConflict((conflict) =>
          conflict.columns(['list', 'consumer', 'external_id']).doUpdateSet((eb) => ({
            ...letter,
            ...(isRetried
              ? { retry_at: eb.case().when('dead_letters.retry_until', '>=', retryAt).then(retryAt).end() }
              : plan),
          })),
        )
        .execute();
      return { ...held, ...moved, hasLetters: true };
    });
  }

  /**
   * Lists that a consumer has not read to their end, and may read now, in portions.
   *
   * @param options.whileActive skips instances that are not active, and paused lists
   */
  async *lagging(
    consumer: string,
    { now, whileActive, portion = LAGGING }: { now: number; whileActive: boolean; portion?: number },
  ): AsyncGenerator<Lagging[]> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const rows: (ListKey & { list: number })[] = await consumed(this.db, consumer, whileActive)
        .select(['lists.instance_id as instanceId', 'lists.resource', 'lists.id as list'])
        .where('lists.id', '>', after)
        .whereRef('lists.change_seq', '>', sql`coalesce(consumers.cursor, 0)`)
        .where((eb) => eb.or([eb('not_before', 'is', null), eb('not_before', '<=', now)]))
        .orderBy('lists.id')
        .limit(portion)
        .execute();
      if (rows.length > 0) yield rows.map(({ instanceId, resource }) => ({ instanceId, resource, consumer }));
      after = rows.length < portion ? undefined : rows.at(-1)?.list;
    }
  }

  /**
   * How far a consumer has come with some lists.
   *
   * @param most pending changes of a list are counted up to here
   * @returns by list
   */
  async progress(
    lists: readonly number[],
    consumer: string,
    most = MOST_COUNTED,
  ): Promise<Map<number, Progress>> {
    const cursor = sql`coalesce(consumers.cursor, 0)`;
    const pending = sql<number>`(select count(*) from (select change_seq from records
      where list = lists.id and change_seq > ${cursor} order by change_seq limit ${most}) as changes)`;
    const letters = sql<number>`(select count(*) from dead_letters where list = lists.id and consumer = ${consumer})`;
    const rows = await this.db
      .selectFrom('lists')
      .leftJoin('consumers', (join) =>
        join.onRef('consumers.list', '=', 'lists.id').on('consumers.consumer', '=', consumer),
      )
      .select(['lists.id', 'error_detail', 'not_before', letters.as('deadLetters')])
      .select(sql<number>`case when lists.change_seq > ${cursor} then ${pending} else 0 end`.as('pending'))
      .where('lists.id', 'in', [0, ...lists])
      .execute();
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Gives a consumer the whole list again. */
  async replayList(list: number, consumer: string): Promise<void> {
    await this.db.durably((tx) =>
      tx
        .updateTable('consumers')
        .set((old) => ({ ...NO_FAILURE, cursor: 0, begun_to: null, fence: old('fence', '+', 1) }))
        .where((eb) => eb.and({ list, consumer }))
        .execute(),
    );
  }

  /** Gives every consumer one record again, as it is. @returns false where there is no such record */
  replayRecord(list: number, id: string): Promise<boolean> {
    return this.db.durably((tx) => this.#replayRecords(tx, list, [id]));
  }

  /** Gives a consumer its dead letters again, and lets it try at once. */
  async retry(list: number, consumer: string, now: number): Promise<void> {
    await this.db.durably(async (tx) => {
      const ofConsumer = { list, consumer };
      await tx
        .updateTable('consumers')
        .set(NO_FAILURE)
        .where((eb) => eb.and(ofConsumer))
        .execute();
      const plan = { retry_at: now, retry_until: now + RETRY_LETTERS.forMs };
      await tx
        .updateTable('dead_letters')
        .set(plan)
        .where((eb) => eb.and(ofConsumer))
        .execute();
    });
    while (await this.retryDue(list, consumer, now));
  }

  /** Lists with dead letters that are due, and none of which a consumer has again. */
  dueLetters(now: number): Promise<{ list: number; consumer: string }[]> {
    return this.db
      .selectFrom('dead_letters')
      .select(['list', 'consumer'])
      .groupBy(['list', 'consumer'])
      .having(({ fn }) => fn.min('retry_at'), '<=', now)
      .having(({ fn }) => fn.max('is_retried'), '=', 0)
      .execute();
  }

  /** Gives a consumer some of its dead letters again that are due. @returns whether there were any */
  retryDue(list: number, consumer: string, now: number): Promise<boolean> {
    return this.db.durably(async (tx) => {
      const letters = await lettersOf(tx, list, consumer)
        .select(['external_id', 'error_kind'])
        .where('retry_at', '<=', now)
        .orderBy('at')
        .limit(RETRY_LETTERS.atOnce)
        .execute();
      if (letters.length === 0) return false;
      if (letters.some(({ error_kind }) => error_kind === 'handler_ended')) {
        // What has ended the delivery process comes alone.
        const suspect = tx.updateTable('consumers').set({ begun_at: now });
        await suspect.where((eb) => eb.and({ list, consumer })).execute();
      }
      const ids = letters.map(({ external_id }) => external_id);
      await tx
        .updateTable('dead_letters')
        .set({ is_retried: 1, retry_at: null })
        .where((eb) => eb.and({ list, consumer }))
        .where('external_id', 'in', ids)
        .execute();
      await this.#replayRecords(tx, list, ids);
      return true;
    });
  }

  async #replayRecords(tx: Transaction<Schema>, list: number, ids: readonly string[]): Promise<boolean> {
    const row = await lockList(this.db, tx, list);
    if (row === undefined) return false;
    const found = tx.selectFrom('records').select('id').where('list', '=', list);
    const records = await found.where('external_id', 'in', [...ids]).execute();
    if (records.length === 0) return false;
    let seq = nextSeq(row.change_seq) - 1;
    for (const { id } of records) {
      await tx.updateTable('records').set({ change_seq: ++seq }).where('id', '=', id).execute();
    }
    await tx.updateTable('lists').set({ change_seq: seq }).where('id', '=', list).execute();
    return true;
  }

  /** Dead letters of a consumer, the newest first. */
  deadLetters(list: number, consumer: string, limit: number): Promise<DeadLetter[]> {
    const letters = lettersOf(this.db, list, consumer).selectAll().orderBy('at', 'desc');
    return letters.orderBy('external_id').limit(limit).execute();
  }
}

function lettersOf(db: Kysely<Schema>, list: number, consumer: string) {
  return db.selectFrom('dead_letters').where((eb) => eb.and({ list, consumer }));
}

/** Lists with their instances, and with the rows of a consumer, which are null before its first claim. */
function consumed(db: Kysely<Schema>, consumer: string, whileActive: boolean) {
  return db
    .selectFrom('lists')
    .innerJoin('instances', 'instances.id', 'lists.instance_id')
    .leftJoin('consumers', (join) =>
      join.onRef('consumers.list', '=', 'lists.id').on('consumers.consumer', '=', consumer),
    )
    .where('lists.removed_at', 'is', null)
    .$if(whileActive, (query) =>
      query.where('instances.status', '=', 'active').where('paused_at', 'is', null),
    );
}

/** Writes a consumer's row if its holder still holds it, and its cursor is where the holder left it. */
function move(
  tx: Transaction<Schema>,
  { list, consumer, fence, cursor }: HeldConsumer,
  values: Partial<Omit<Consumer, 'list' | 'consumer' | 'fence'>>,
): Promise<Consumer | undefined> {
  return tx
    .updateTable('consumers')
    .set(values)
    .where((eb) => eb.and({ list, consumer, fence, cursor }))
    .returningAll()
    .executeTakeFirst();
}
