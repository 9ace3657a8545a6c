import { type Selectable, sql, type Transaction } from 'kysely';
import { type Database, Store } from './database.ts';
import type { OutboxTable, Schema } from './schema.ts';
import type { WriteState } from './states.ts';

export type Write = Selectable<OutboxTable>;

/** What a handler wants written. */
export type NewWrite = Pick<
  Write,
  'key_hash' | 'request_hash' | 'operation' | 'is_repeatable' | 'object' | 'path_values' | 'body'
> & {
  key: string;
  /** Whether the key may stand for another request already. */
  keepsFirst: boolean;
};

/** What became of a try. Times are in milliseconds. */
export type WriteOutcome =
  | { state: 'done'; status: number | undefined; answerId: string | null }
  | { state: 'refused' | 'unknown'; status?: number | undefined; error: string }
  /** `wasSent`: the try may have reached the service. */
  | {
      state: 'pending';
      afterMs: number;
      wasSent: boolean;
      status?: number | undefined;
      /** Null where the service only asked to wait. */
      error: string | null;
    };

/** Writes of an instance by state, and how many the last disconnect discarded. */
type WriteCounts = Record<Exclude<WriteState, 'done'>, number>;

/** What a sender saw when it looked for writes: the database's time, and how often it was woken before. */
interface Seen {
  now: number;
  wakes: number;
}

/** Writes that one statement adds, and that one transaction forgets. */
const PORTION = 500;

/** The indexes of the migration have these words. An open write holds up later ones of its object. */
export const UNFINISHED = sql<boolean>`state not in ('done', 'discarded')`;
const isHead = sql<boolean>`not exists (select 1 from outbox as earlier
  where earlier.instance_id = outbox.instance_id and earlier.object = outbox.object
  and earlier.state in ('pending', 'sending', 'unknown') and earlier.id < outbox.id)`;

/** A write that cannot be sent again. */
const NO_CONTENT = { path_values: null, body: null } as const;

/** What is left of a finished write after its retention: the hashes, so that its key adds nothing again. */
const FORGOTTEN = { ...NO_CONTENT, key: null, object: null, answer_id: null, error: null } as const;

const ANSWER_LOST = 'The worker ended before the answer came.';
const NO_ANSWER = 'The company was disconnected, or the record erased, before it was known.';

/** What a write is about: resource and id of its path. @param path such as `/conversations/cnv_1/tags` */
export function objectOf(path: string): string {
  return path.split('/').slice(0, 3).join('/');
}

/** Locks the outbox of an instance, in which ids then rise in the order of commits, and wakes its sender. */
async function wake({ dialect }: Database, tx: Transaction<Schema>, instanceId: string): Promise<void> {
  const due = { due_at: dialect.nowMs };
  const wakes = sql<number>`outboxes.wakes + 1`;
  const row = tx.insertInto('outboxes').values({ instance_id: instanceId, ...due });
  await row.onConflict((conflict) => conflict.column('instance_id').doUpdateSet({ ...due, wakes })).execute();
}

/**
 * Adds writes in the handler's transaction. A key that was used before adds nothing.
 *
 * @throws Error if it was used for another request, and the write does not keep the first one
 */
export async function addWrites(
  db: Database,
  tx: Transaction<Schema>,
  instanceId: string,
  writes: readonly NewWrite[],
): Promise<void> {
  if (writes.length > 0) await wake(db, tx, instanceId);
  for (let at = 0; at < writes.length; at += PORTION) {
    const portion = writes.slice(at, at + PORTION);
    const facts = { instance_id: instanceId, state: 'pending', created_at: db.dialect.nowMs } as const;
    const added = await tx
      .insertInto('outbox')
      .values(portion.map(({ keepsFirst: _, ...write }) => ({ ...write, ...facts })))
      .onConflict((conflict) => conflict.columns(['instance_id', 'key_hash']).doNothing())
      .returning('key_hash')
      .execute();
    if (added.length === portion.length) continue;
    const known = await tx
      .selectFrom('outbox')
      .select(['key_hash', 'request_hash'])
      .where('instance_id', '=', instanceId)
      .where(
        'key_hash',
        'in',
        portion.map(({ key_hash }) => key_hash),
      )
      .execute();
    const requests = new Map(known.map(({ key_hash, request_hash }) => [key_hash, request_hash]));
    const wrong = portion.find(
      ({ key_hash, request_hash, keepsFirst }) => !keepsFirst && requests.get(key_hash) !== request_hash,
    );
    if (wrong === undefined) continue;
    const advice =
      'Give each request a key of its own, or add keepFirst: true to leave the first one as it is.';
    throw new Error(`The key "${wrong.key}" stands for another request in the outbox. ${advice}`);
  }
}

/**
 * Ends the writes that wait in the outbox: discards pending and refused ones, and makes those being sent unknown. None
 * keeps a body.
 *
 * @param options.object only the writes of one object, such as `/conversations/cnv_1`
 * @param options.deletesData forgets finished and unknown writes, too
 * @returns how many were discarded
 */
export async function discardWrites(
  db: Database,
  tx: Transaction<Schema>,
  instanceId: string,
  { object, deletesData = false }: { object?: string; deletesData?: boolean } = {},
): Promise<number> {
  await wake(db, tx, instanceId);
  const which = { instance_id: instanceId, ...(object !== undefined && { object }) };
  const all = () => tx.updateTable('outbox').where((eb) => eb.and(which));
  const isSent = sql<boolean>`state = 'sending'`;
  // One statement, as a sender may write a result meanwhile.
  const open = await all()
    .set({
      state: sql<WriteState>`case when ${isSent} then 'unknown' else 'discarded' end`,
      ended_at: sql<number | null>`case when ${isSent} then null else ${db.dialect.nowMs} end`,
    })
    .where('state', 'in', ['pending', 'refused', 'sending'])
    .where(UNFINISHED)
    .returning('state')
    .execute();
  const discarded = open.filter(({ state }) => state === 'discarded').length;
  const unknown = all().where('state', '=', 'unknown').where(UNFINISHED);
  await unknown
    .set(
      deletesData ? { state: 'discarded', ended_at: db.dialect.nowMs } : { ...NO_CONTENT, error: NO_ANSWER },
    )
    .execute();
  const isErased = deletesData || object !== undefined;
  await all()
    .set(isErased ? FORGOTTEN : NO_CONTENT)
    .where('ended_at', 'is not', null)
    .where('object', 'is not', null)
    .execute();
  const count = tx.updateTable('outboxes').set({ discarded }).where('instance_id', '=', instanceId);
  if (object === undefined) await count.execute();
  return discarded;
}

/** The table of the outbox. Its transactions are durable: what was sent must be known after a power cut. */
export class OutboxStore extends Store {
  /** Instances whose sender has work now, those first that wait longest. */
  async due(limit: number): Promise<string[]> {
    const rows = await this.db
      .selectFrom('outboxes')
      .innerJoin('instances', 'instances.id', 'outboxes.instance_id')
      .select('instance_id')
      // The subquery lets PostgreSQL use the index: its clock changes within a statement.
      .where('due_at', '<=', sql<number>`(select ${this.db.dialect.nowMs})`)
      .where('status', '=', 'active')
      .orderBy('due_at')
      .limit(limit)
      .execute();
    return rows.map(({ instance_id }) => instance_id);
  }

  /**
   * Writes that may be sent now, of each object the oldest open one: those that have waited, and new ones.
   *
   * @param options.againMs when a write is sent again whose sender ended, in milliseconds
   * @returns also the writes that became unknown, as their sender ended
   */
  async next(
    instanceId: string,
    { limit, againMs }: { limit: number; againMs: number },
  ): Promise<{ writes: Write[]; lost: Write[]; seen: Seen }> {
    const own = this.db.selectFrom('outboxes').where('instance_id', '=', instanceId);
    const found = await own.select(['wakes', this.db.dialect.nowMs.as('now')]).executeTakeFirst();
    const seen = found ?? { wakes: 0, now: 0 };
    const late = this.#unfinished(instanceId)
      .where('state', '=', 'sending')
      .where('not_before', '<=', seen.now);
    const lost: Write[] = [];
    for (const write of await late.selectAll().execute()) {
      const again = { state: 'pending', afterMs: againMs, wasSent: true, error: ANSWER_LOST } as const;
      const unknown = { state: 'unknown', error: ANSWER_LOST } as const;
      const isWritten = await this.finish(write, write.is_repeatable ? again : unknown);
      if (isWritten && !write.is_repeatable) lost.push({ ...write, error: ANSWER_LOST });
    }
    const heads = this.#unfinished(instanceId)
      .where('state', '=', 'pending')
      .where(isHead)
      .selectAll()
      .limit(limit);
    const fresh = await heads.where('not_before', '=', 0).orderBy('id').execute();
    const waited = await heads
      .where('not_before', '>', 0)
      .where('not_before', '<=', seen.now)
      .orderBy('not_before')
      .execute();
    // Writes that fail again and again must not keep others waiting, nor the other way round.
    const places = Math.max(Math.floor(limit / 2), limit - fresh.length);
    return { writes: [...waited.slice(0, places), ...fresh].slice(0, limit), lost, seen };
  }

  /**
   * Takes a pending write for a while: from here on it may have reached the service.
   *
   * @returns undefined when another worker has it, a person discarded it, or the instance is not active
   */
  begin({ id, instance_id, attempts }: Write, leaseMs: number): Promise<Write | undefined> {
    return this.db.durably(async (tx) => {
      // A disconnect waits for this lock, and then finds the write.
      const instance = await tx
        .selectFrom('instances')
        .select('status')
        .where('id', '=', instance_id)
        .$if(this.db.dialect.name === 'postgres', (query) => query.forShare())
        .executeTakeFirst();
      if (instance?.status !== 'active') return undefined;
      return tx
        .updateTable('outbox')
        .set({ state: 'sending', attempts: attempts + 1, not_before: this.#in(leaseMs) })
        .where((eb) => eb.and({ id, attempts, state: 'pending' }))
        .returningAll()
        .executeTakeFirst();
    });
  }

  /** Notes what became of a try. @returns false when the try is not under way any more */
  finish({ id, attempts }: Pick<Write, 'id' | 'attempts'>, outcome: WriteOutcome): Promise<boolean> {
    const { state, status = null } = outcome;
    const values =
      outcome.state === 'done'
        ? { answer_id: outcome.answerId, error: null, ended_at: this.db.dialect.nowMs }
        : outcome.state === 'pending'
          ? { error: outcome.error, not_before: this.#in(outcome.afterMs) }
          : { error: outcome.error };
    const wasSent = outcome.state === 'pending' && outcome.wasSent;
    return this.db.durably(async (tx) => {
      const { numUpdatedRows } = await tx
        .updateTable('outbox')
        .set({ state, status, ...values, ...(wasSent && { was_sent: 1 }) })
        .where((eb) => eb.and({ id, attempts, state: 'sending' }))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /** Lets a pending write wait for its guard. */
  async postpone({ id, attempts }: Write, waitMs: number): Promise<void> {
    await this.db.transact((tx) =>
      tx
        .updateTable('outbox')
        .set({ not_before: this.#in(waitMs) })
        .where((eb) => eb.and({ id, attempts, state: 'pending' }))
        .execute(),
    );
  }

  /**
   * Says when an instance's sender has work again.
   *
   * @param seen of the look that found nothing more to send now
   * @param waitMs by default until a write may be sent, or a lease ends
   * @returns milliseconds until then; undefined when nothing is to be sent
   */
  schedule(instanceId: string, seen: Seen, waitMs?: number): Promise<number | undefined> {
    return this.db.transact(async (tx) => {
      const next =
        waitMs === undefined
          ? await this.#unfinished(instanceId, tx)
              .select(({ fn }) => fn.min<number | null>('not_before').as('at'))
              .where('state', 'in', ['pending', 'sending'])
              .where('not_before', '>', seen.now)
              .executeTakeFirstOrThrow()
          : { at: seen.now + Math.ceil(waitMs) };
      const { numUpdatedRows } = await tx
        .updateTable('outboxes')
        .set({ due_at: next.at })
        .where((eb) => eb.and({ instance_id: instanceId, wakes: seen.wakes }))
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return 0;
      return next.at === null ? undefined : next.at - seen.now;
    });
  }

  /** Counts an instance's writes by state. Those that are done are not counted. */
  async counts(instanceId: string): Promise<WriteCounts> {
    const own = await this.db
      .selectFrom('outboxes')
      .select('discarded')
      .where('instance_id', '=', instanceId)
      .executeTakeFirst();
    const none = { pending: 0, sending: 0, refused: 0, unknown: 0, discarded: own?.discarded ?? 0 };
    if (own === undefined) return none;
    const counted = await this.#unfinished(instanceId)
      .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
      .groupBy('state')
      .execute();
    return { ...none, ...Object.fromEntries(counted.map(({ state, count }) => [state, count])) };
  }

  /** Writes that are not finished, the oldest first: those that wait for a person, or all. */
  unfinished(instanceId: string, { limit, forPeople }: { limit: number; forPeople: boolean }) {
    return this.#unfinished(instanceId)
      .selectAll()
      .$if(forPeople, (query) => query.where('error', 'is not', null))
      .orderBy(sql`case when state in ('unknown', 'refused') then 0 else 1 end`)
      .orderBy('id')
      .limit(limit)
      .execute();
  }

  /** The last writes of an instance that are finished, the newest first. */
  finished(instanceId: string, limit: number): Promise<Write[]> {
    return this.db
      .selectFrom('outbox')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('ended_at', 'is not', null)
      .where('object', 'is not', null)
      .orderBy('ended_at', 'desc')
      .limit(limit)
      .execute();
  }

  /**
   * Sends a write again that waits, was refused or is unknown; or ends it: an unknown one counts as done.
   *
   * @returns the state before and now; undefined without such a write. A write stays as it is while it is being sent,
   *   when it is finished, and without its content
   */
  resolve(
    instanceId: string,
    keyHash: string,
    decision: 'retry' | 'discard',
  ): Promise<{ from: WriteState; to: WriteState } | undefined> {
    return this.db.durably(async (tx) => {
      await wake(this.db, tx, instanceId);
      const ofKey = { instance_id: instanceId, key_hash: keyHash };
      const found = tx.selectFrom('outbox').selectAll();
      const write = await found.where((eb) => eb.and(ofKey)).executeTakeFirst();
      if (write === undefined) return undefined;
      const from = write.state;
      const isOpen = from === 'pending' || from === 'refused' || from === 'unknown';
      if (!isOpen || (decision === 'retry' && write.path_values === null)) return { from, to: from };
      const to = decision === 'retry' ? 'pending' : from === 'unknown' ? 'done' : 'discarded';
      const ended = { ended_at: this.db.dialect.nowMs, ...NO_CONTENT };
      const values = decision === 'retry' ? { not_before: 0, error: null, status: null } : ended;
      const update = tx.updateTable('outbox').set({ state: to, ...values });
      await update.where((eb) => eb.and(ofKey)).execute();
      return { from, to };
    });
  }

  /** Deletes the content of writes that ended up to a moment, in milliseconds since 1970. */
  async forget(until: number, signal?: AbortSignal): Promise<void> {
    for (let count = PORTION; count === PORTION && !signal?.aborted; ) {
      count = await this.db.transact(async (tx) => {
        const old = tx
          .selectFrom('outbox')
          .select('id')
          .where('ended_at', '<=', until)
          .where('ended_at', 'is not', null)
          .where('object', 'is not', null)
          .limit(PORTION);
        const { numUpdatedRows } = await tx
          .updateTable('outbox')
          .set(FORGOTTEN)
          .where('id', 'in', old)
          .executeTakeFirst();
        return Number(numUpdatedRows);
      });
    }
  }

  #unfinished(instanceId: string, db: Database | Transaction<Schema> = this.db) {
    return db.selectFrom('outbox').where('instance_id', '=', instanceId).where(UNFINISHED);
  }

  #in(ms: number) {
    return sql<number>`${this.db.dialect.nowMs} + ${Math.ceil(ms)}`;
  }
}
