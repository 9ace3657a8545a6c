import { type Kysely, type Selectable, sql, type Transaction, type Updateable } from 'kysely';
import { type Database, lockList } from './database.ts';
import type { ListTable, RunTable, Schema } from './schema.ts';
import { type ErrorKind, SERVICE_OUTAGES } from './states.ts';

export type Run = Selectable<RunTable>;
export type List = Selectable<ListTable>;

/** Runs of a list that are kept. */
const HISTORY = 50;

/** Names a list: one instance, one resource. */
export interface ListKey {
  instanceId: string;
  resource: string;
}

/** A run that a worker holds: commits name the fence. */
export interface RunClaim {
  run: number;
  list: number;
  fence: number;
}

/** An open run that needs a job, and until when it waits (milliseconds since 1970), if it does. */
export interface OpenRun extends ListKey {
  run: number;
  until: number | null;
}

/** A list with its newest run. */
export interface ListStatus extends List {
  run: Run | undefined;
}

/** Why a run waits or has failed. */
export interface RunError {
  kind: ErrorKind;
  detail: string;
}

/** A list whose pages come. */
export const NOT_FAILING = { failing_since: null, failing_told_at: null } as const;

const NO_ERROR = { error_kind: null, error_detail: null, attempt: 0, stuck_since: null } as const;

/** Lists and their runs. */
export class RunStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The lists of an instance, each with its newest run, which is the open one if there is one. */
  async lists(instanceId: string): Promise<ListStatus[]> {
    const lists = await this.#db
      .selectFrom('lists')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('removed_at', 'is', null)
      .execute();
    const runs = await this.#db
      .selectFrom('runs')
      .selectAll()
      .where('id', 'in', (newest) =>
        newest
          .selectFrom('runs')
          .innerJoin('lists', 'lists.id', 'runs.list')
          .select(({ fn }) => fn.max('runs.id').as('id'))
          .where('instance_id', '=', instanceId)
          .where('removed_at', 'is', null)
          .groupBy('list'),
      )
      .execute();
    return lists.map((list) => ({ ...list, run: runs.find((run) => run.list === list.id) }));
  }

  /** The last runs of a list, the newest first. */
  history(list: number, limit = HISTORY): Promise<Run[]> {
    return this.#db
      .selectFrom('runs')
      .selectAll()
      .where('list', '=', list)
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
  }

  /**
   * Sees to it that each of these lists of one instance has an open run, and that none waits for a retry. A run that is
   * stuck at its place is closed, and another one begins at the first page.
   *
   * @param options.retries also runs that wait for a retry go on now
   * @returns the open runs, none of a list that is paused; undefined when the instance is not active
   */
  start(
    instanceId: string,
    resources: readonly string[],
    now: number,
    { retries = false }: { retries?: boolean } = {},
  ): Promise<OpenRun[] | undefined> {
    return this.#db.transact(async (transaction) => {
      const instance = await transaction
        .selectFrom('instances')
        .select('id')
        .where('id', '=', instanceId)
        .where('status', '=', 'active')
        .executeTakeFirst();
      if (instance === undefined) return undefined;
      const open: OpenRun[] = [];
      for (const resource of resources) {
        const list = await ensureList(transaction, { instanceId, resource });
        if ((await lockList(this.#db, transaction, list))?.paused_at != null) continue;
        const run = await startRun(transaction, list, now, retries);
        open.push({ instanceId, resource, run: run.id, until: run.wait_until });
      }
      return open;
    });
  }

  /**
   * Pauses one list: its workers cannot commit any more.
   *
   * @returns false when it is paused already, or its instance is disconnected
   */
  pause(key: ListKey, now: number): Promise<boolean> {
    return this.#setPaused(key, now);
  }

  /** Ends the pause of one list. @returns false when it is not paused, or its instance is disconnected */
  resume(key: ListKey): Promise<boolean> {
    return this.#setPaused(key, null);
  }

  /** Sets the interval of one list; null: as configured. @returns false when its instance is disconnected */
  setInterval(key: ListKey, minutes: number | null): Promise<boolean> {
    return this.#onList(key, async (transaction, list) => {
      const interval = { interval_minutes: minutes };
      await transaction.updateTable('lists').set(interval).where('id', '=', list).execute();
      return true;
    });
  }

  /**
   * Takes the open run of an active instance over, unless its list is paused: its holder before cannot commit any more.
   *
   * @returns undefined when there is nothing to do
   */
  claim({ instanceId, resource }: ListKey): Promise<Run | undefined> {
    return this.#db.transact(async (transaction) => {
      const found = await transaction
        .selectFrom('runs')
        .innerJoin('lists', 'lists.id', 'runs.list')
        .innerJoin('instances', 'instances.id', 'lists.instance_id')
        .select(['runs.id', 'runs.fence'])
        .where('lists.instance_id', '=', instanceId)
        .where('lists.resource', '=', resource)
        .where('lists.removed_at', 'is', null)
        .where('lists.paused_at', 'is', null)
        .where('runs.finished_at', 'is', null)
        .where('instances.status', '=', 'active')
        .executeTakeFirst();
      if (found === undefined) return undefined;
      // A pause in between has raised the fence.
      return transaction
        .updateTable('runs')
        .set({ fence: found.fence + 1, state: 'running', waiting_for: null, wait_until: null })
        .where('id', '=', found.id)
        .where('fence', '=', found.fence)
        .returningAll()
        .executeTakeFirst();
    });
  }

  /** Whether the claim still holds: else no request is to be sent for it. */
  holds(claim: RunClaim): Promise<boolean> {
    return holdsRun(this.#db, claim);
  }

  /** Notes that the run waits. */
  async wait(
    claim: RunClaim,
    waiting: {
      for: NonNullable<Run['waiting_for']>;
      until: number | null;
      /** With the moment at which it was met, in milliseconds since 1970. */
      error?: (RunError & { at: number }) | undefined;
      attempt?: number;
      stuckSince?: number | null;
      hasFailed?: boolean;
      /** Requests that brought no page, and those of them that were refused. */
      requests: number;
      refused: number;
    },
  ): Promise<void> {
    const values = {
      state: waiting.hasFailed ? ('failed' as const) : ('waiting' as const),
      waiting_for: waiting.for,
      wait_until: waiting.until,
      ...(waiting.attempt !== undefined && { attempt: waiting.attempt }),
      ...(waiting.stuckSince !== undefined && { stuck_since: waiting.stuckSince }),
      ...(waiting.error !== undefined && {
        error_kind: waiting.error.kind,
        error_detail: waiting.error.detail,
      }),
    };
    await this.#update(claim, values, waiting, waiting.error?.at);
  }

  /**
   * Closes a run that cannot go on; the next one begins at the first page.
   *
   * @param counts requests that brought no page, and those of them that were refused
   * @returns the run; undefined, with nothing written, when it is not the claim's any more
   */
  fail(
    claim: RunClaim,
    error: RunError,
    now: number,
    counts = { requests: 0, refused: 0 },
  ): Promise<Run | undefined> {
    const values = {
      state: 'failed' as const,
      error_kind: error.kind,
      error_detail: error.detail,
      waiting_for: null,
      wait_until: null,
      finished_at: now,
    };
    return this.#update(claim, values, counts, now);
  }

  /**
   * Closes a run that has read its list to the end.
   *
   * @param held deletions that it holds back
   * @returns the run; undefined, with nothing written, when it is not the claim's any more
   */
  finish(claim: RunClaim, held: number, now: number): Promise<Run | undefined> {
    return this.#db.transact(async (transaction) => {
      await lockList(this.#db, transaction, claim.list);
      const run = await transaction
        .updateTable('runs')
        .set({ ...NO_ERROR, state: 'finished', held, waiting_for: null, wait_until: null, finished_at: now })
        .where('id', '=', claim.run)
        .where('fence', '=', claim.fence)
        .returningAll()
        .executeTakeFirst();
      if (run === undefined) return undefined;
      await transaction
        .updateTable('lists')
        .set({ ...NOT_FAILING, behind_since: null })
        .where('id', '=', claim.list)
        .execute();
      await transaction
        .deleteFrom('rejected_records')
        .where('list', '=', claim.list)
        .where('run', '<', claim.run)
        .execute();
      return run;
    });
  }

  /** Open runs that nobody has paused, and whose wait ends before a moment: each must have a job. */
  async open(now: number): Promise<OpenRun[]> {
    const rows = await this.#db
      .selectFrom('runs')
      .innerJoin('lists', 'lists.id', 'runs.list')
      .innerJoin('instances', 'instances.id', 'lists.instance_id')
      .select(['runs.id', 'lists.instance_id', 'lists.resource', 'wait_until'])
      .where('runs.finished_at', 'is', null)
      .where('lists.paused_at', 'is', null)
      .where('instances.status', '=', 'active')
      .where((eb) => eb.or([eb('wait_until', 'is', null), eb('wait_until', '<=', now)]))
      .execute();
    return rows.map((row) => ({
      run: row.id,
      instanceId: row.instance_id,
      resource: row.resource,
      until: row.wait_until,
    }));
  }

  /**
   * Active instances whose list of this resource is due: it never ran, or its last run was closed long enough ago, and it
   * is not paused.
   *
   * @param pauses milliseconds behind a run: the interval of a list that has none of its own, and what is enough behind
   *   one that failed, by an outage of the service or otherwise
   */
  async due(
    resource: string,
    now: number,
    pauses: { intervalMs: number; outageMs: number; failedMs: number },
  ): Promise<string[]> {
    const interval = sql<number>`coalesce(lists.interval_minutes * 60000, ${pauses.intervalMs})`;
    const rows = await this.#db
      .selectFrom('instances')
      .select('instances.id')
      .where('instances.status', '=', 'active')
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom('lists')
              .leftJoin('runs', (join) =>
                join.onRef('runs.list', '=', 'lists.id').on('runs.id', '=', (newest) =>
                  newest
                    .selectFrom('runs as newest')
                    .select(({ fn }) => fn.max('newest.id').as('id'))
                    .whereRef('newest.list', '=', 'lists.id'),
                ),
              )
              .select('lists.id')
              .whereRef('lists.instance_id', '=', 'instances.id')
              .where('lists.resource', '=', resource)
              .where('lists.removed_at', 'is', null)
              .where((run) =>
                run.or([
                  run('lists.paused_at', 'is not', null),
                  run.and([run('runs.id', 'is not', null), run('runs.finished_at', 'is', null)]),
                  run.and([
                    run(run('runs.finished_at', '+', interval), '>', now),
                    run.or([
                      run('runs.state', '=', 'finished'),
                      run.and([
                        run('runs.state', '=', 'failed'),
                        run.or([
                          run('runs.finished_at', '>', now - pauses.outageMs),
                          run.and([
                            run('runs.finished_at', '>', now - pauses.failedMs),
                            run('runs.error_kind', 'not in', SERVICE_OUTAGES),
                          ]),
                        ]),
                      ]),
                    ]),
                  ]),
                ]),
              ),
          ),
        ),
      )
      .execute();
    return rows.map(({ id }) => id);
  }

  /** The last whole run of a list; before another one, if that is named. */
  lastFinished(list: number, before = Number.MAX_SAFE_INTEGER): Promise<Run | undefined> {
    return this.#db
      .selectFrom('runs')
      .selectAll()
      .where('list', '=', list)
      .where('state', '=', 'finished')
      .where('id', '<', before)
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst();
  }

  /**
   * Lists of active instances that have failed since before a moment and of which nobody was told: told from now on.
   *
   * @returns each with the last run that failed; in one worker alone
   */
  async takeFailing(
    since: number,
    now: number,
  ): Promise<(ListKey & { since: number; run: Run | undefined })[]> {
    const rows = await this.#db.durably((transaction) =>
      transaction
        .updateTable('lists')
        .set({ failing_told_at: now })
        .where('failing_since', '<=', since)
        .where('failing_told_at', 'is', null)
        .where('paused_at', 'is', null)
        .where('removed_at', 'is', null)
        .where('instance_id', 'in', (from) =>
          from.selectFrom('instances').select('instances.id').where('status', '=', 'active'),
        )
        .returning(['id', 'instance_id', 'resource', 'failing_since'])
        .execute(),
    );
    const read = rows.map(async ({ id, instance_id: instanceId, resource, failing_since }) => {
      // A run that has just begun has not met the failure yet.
      const run = (await this.history(id, 2)).find(({ error_kind }) => error_kind !== null);
      return { instanceId, resource, since: failing_since ?? now, run };
    });
    return Promise.all(read);
  }

  /** Notes that the deletions that a whole run held are done. */
  async releaseHeld(run: number): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction.updateTable('runs').set({ held: 0 }).where('id', '=', run).execute(),
    );
  }

  #setPaused(key: ListKey, pausedAt: number | null): Promise<boolean> {
    return this.#onList(key, async (transaction, list) => {
      const { numUpdatedRows } = await transaction
        .updateTable('lists')
        .set({ paused_at: pausedAt })
        .where('id', '=', list)
        .where('paused_at', pausedAt === null ? 'is not' : 'is', null)
        .executeTakeFirst();
      const isChanged = numUpdatedRows > 0n;
      if (isChanged && pausedAt !== null) await raiseFences(this.#db, transaction, key);
      return isChanged;
    });
  }

  /** Changes a list, which is made if there is none. @returns false where there is no instance with a connection */
  #onList(
    key: ListKey,
    change: (transaction: Transaction<Schema>, list: number) => Promise<boolean>,
  ): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const instance = await transaction
        .selectFrom('instances')
        .select('id')
        .where('id', '=', key.instanceId)
        .where('status', '!=', 'disconnected')
        .executeTakeFirst();
      return instance !== undefined && change(transaction, await ensureList(transaction, key));
    });
  }

  /** @param failedAt when the list failed, if it did: it counts as failing from its first failure on */
  #update(
    claim: RunClaim,
    values: Updateable<RunTable>,
    { requests, refused }: { requests: number; refused: number },
    failedAt?: number,
  ): Promise<Run | undefined> {
    return this.#db.transact(async (transaction) => {
      // Pages lock their list first, too.
      const list = failedAt === undefined ? undefined : await lockList(this.#db, transaction, claim.list);
      const run = await transaction
        .updateTable('runs')
        .set((old) => ({
          ...values,
          requests: old('requests', '+', requests),
          refused: old('refused', '+', refused),
        }))
        .where('id', '=', claim.run)
        .where('fence', '=', claim.fence)
        .returningAll()
        .executeTakeFirst();
      if (run !== undefined && list?.failing_since === null) {
        await transaction
          .updateTable('lists')
          .set({ failing_since: failedAt ?? null })
          .where('id', '=', claim.list)
          .execute();
      }
      return run;
    });
  }
}

/** Whether nobody has taken a run over, paused or ended it since it was claimed. */
export async function holdsRun(db: Kysely<Schema>, { run, fence }: RunClaim): Promise<boolean> {
  const found = await db
    .selectFrom('runs')
    .select('id')
    .where('id', '=', run)
    .where('fence', '=', fence)
    .executeTakeFirst();
  return found !== undefined;
}

/** The id of a list, which is made if there is none. */
async function ensureList(
  transaction: Transaction<Schema>,
  { instanceId, resource }: ListKey,
): Promise<number> {
  const find = () =>
    transaction
      .selectFrom('lists')
      .select('id')
      .where('instance_id', '=', instanceId)
      .where('resource', '=', resource)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  const known = await find();
  if (known !== undefined) return known.id;
  await transaction
    .insertInto('lists')
    .values({ instance_id: instanceId, resource })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await find())?.id ?? 0;
}

async function startRun(transaction: Transaction<Schema>, list: number, now: number, retries: boolean) {
  const open = await transaction
    .selectFrom('runs')
    .selectAll()
    .where('list', '=', list)
    .where('finished_at', 'is', null)
    .executeTakeFirst();
  if (open !== undefined && !retries) return open;
  if (open !== undefined && (open.state !== 'failed' || open.stuck_since === null)) {
    if (open.waiting_for !== 'retry') return open;
    return transaction
      .updateTable('runs')
      .set({ state: 'waiting', waiting_for: 'turn', wait_until: null, attempt: 0 })
      .where('id', '=', open.id)
      .returningAll()
      .executeTakeFirstOrThrow();
  }
  if (open !== undefined) {
    await transaction
      .updateTable('runs')
      .set({ finished_at: now, fence: open.fence + 1, waiting_for: null, wait_until: null })
      .where('id', '=', open.id)
      .execute();
  }
  await transaction
    .updateTable('lists')
    .set({ behind_since: sql<number>`coalesce(behind_since, ${now})` })
    .where('id', '=', list)
    .execute();
  const oldest = transaction.selectFrom('runs').select('id').where('list', '=', list);
  await transaction
    .deleteFrom('runs')
    .where('list', '=', list)
    .where(
      'id',
      '<=',
      oldest
        .orderBy('id', 'desc')
        .limit(1)
        .offset(HISTORY - 1),
    )
    .execute();
  return transaction
    .insertInto('runs')
    .values({ list, state: 'waiting', waiting_for: 'turn', started_at: now })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/**
 * Raises the fences of runs and consumers, of an instance or of one list: workers that hold them cannot write any more.
 *
 * @param of.endedAt when the open runs end for good (milliseconds since 1970); else they stay as they are
 */
export async function raiseFences(
  db: Database,
  transaction: Kysely<Schema>,
  { instanceId, resource, endedAt }: { instanceId: string; resource?: string; endedAt?: number },
): Promise<void> {
  const lists = transaction
    .selectFrom('lists')
    .select('id')
    .where('instance_id', '=', instanceId)
    .$if(resource !== undefined, (query) => query.where('resource', '=', resource ?? ''));
  // Pages lock their list, too: one that is being written comes to its end first.
  await lists
    .orderBy('id')
    .$if(db.dialect.name === 'postgres', (query) => query.forUpdate())
    .execute();
  await transaction
    .updateTable('runs')
    .set((old) => ({ fence: old('fence', '+', 1) }))
    .$if(endedAt !== undefined, (query) =>
      query.set({ state: 'ended', finished_at: endedAt ?? null, waiting_for: null, wait_until: null }),
    )
    .where('list', 'in', lists)
    .where('finished_at', 'is', null)
    .execute();
  await transaction
    .updateTable('runs')
    .set({ state: 'waiting', waiting_for: 'turn' })
    .where('list', 'in', lists)
    .where('state', '=', 'running')
    .execute();
  await transaction
    .updateTable('consumers')
    .set((old) => ({ fence: old('fence', '+', 1) }))
    .where('list', 'in', lists)
    .execute();
}
