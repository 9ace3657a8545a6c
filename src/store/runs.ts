import { type Kysely, type Selectable, sql, type Transaction, type Updateable } from 'kysely';
import { Store } from './database.ts';
import { ensureList, type ListKey, lockList, raiseFences } from './lists.ts';
import type { ListTable, RunTable, Schema } from './schema.ts';
import { type ErrorKind, SERVICE_OUTAGES } from './states.ts';

export type { ListKey };
export type Run = Selectable<RunTable>;
export type List = Selectable<ListTable>;

/** Runs of a list that are kept. */
const HISTORY = 50;

/** A run that a worker holds: its commits name the fence. */
export interface RunClaim {
  run: number;
  list: number;
  fence: number;
}

/** An open run that needs a job, and the end of its wait (milliseconds since 1970), if it waits. */
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

/** Requests that brought no page, and how many of them the service refused. */
interface RequestCounts {
  requests: number;
  refused: number;
}

/** A list whose pages come. */
export const NOT_FAILING = { failing_since: null, failing_told_at: null } as const;

/** A run that waits for nothing, and one that has no error. */
export const NO_WAIT = { waiting_for: null, wait_until: null } as const;
export const NO_ERROR = { error_kind: null, error_detail: null, attempt: 0, stuck_since: null } as const;

/** Lists and their runs. */
export class RunStore extends Store {
  /** The lists of an instance, each with its newest run. An open run is always the newest. */
  async lists(instanceId: string): Promise<ListStatus[]> {
    const lists = await this.db
      .selectFrom('lists')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('removed_at', 'is', null)
      .execute();
    return Promise.all(lists.map(async (list) => ({ ...list, run: (await this.history(list.id, 1))[0] })));
  }

  /** The last runs of a list, the newest first. */
  history(list: number, limit = HISTORY): Promise<Run[]> {
    const runs = this.db.selectFrom('runs').selectAll().where('list', '=', list);
    return runs.orderBy('id', 'desc').limit(limit).execute();
  }

  /**
   * Gives each of these lists of one instance an open run.
   *
   * @param options.retries also ends the wait for a retry, and replaces a run that is stuck at its cursor by one that
   *   begins at the first page
   * @returns the open runs, without those of paused lists; undefined when the instance is not active
   */
  start(
    instanceId: string,
    resources: readonly string[],
    now: number,
    { retries = false }: { retries?: boolean } = {},
  ): Promise<OpenRun[] | undefined> {
    return this.db.transact(async (tx) => {
      const instance = await findInstance(tx, instanceId);
      if (instance?.status !== 'active') return undefined;
      const open: OpenRun[] = [];
      for (const resource of resources) {
        const list = await ensureList(tx, { instanceId, resource });
        if ((await lockList(this.db, tx, list))?.paused_at != null) continue;
        const run = await startRun(tx, list, now, retries);
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
    return this.#change(key, { paused_at: now });
  }

  /** Ends the pause of one list. @returns false when it is not paused, or its instance is disconnected */
  resume(key: ListKey): Promise<boolean> {
    return this.#change(key, { paused_at: null });
  }

  /** Sets the interval of one list; null: as configured. @returns false when its instance is disconnected */
  setInterval(key: ListKey, minutes: number | null): Promise<boolean> {
    return this.#change(key, { interval_minutes: minutes });
  }

  /**
   * Takes over the open run of an active instance, unless its list is paused. Its earlier holder cannot commit any more.
   *
   * @returns undefined when there is nothing to do
   */
  claim(key: ListKey): Promise<Run | undefined> {
    return this.db.transact(async (tx) => {
      const found = await openRuns(tx)
        .select(['runs.id', 'runs.fence'])
        .where((eb) => eb.and({ 'lists.instance_id': key.instanceId, 'lists.resource': key.resource }))
        .executeTakeFirst();
      if (found === undefined) return undefined;
      // A pause in between has raised the fence.
      return tx
        .updateTable('runs')
        .set({ ...NO_WAIT, fence: found.fence + 1, state: 'running' })
        .where((eb) => eb.and(found))
        .returningAll()
        .executeTakeFirst();
    });
  }

  /** Whether the claim still holds. If not, no request may be sent for it. */
  holds(claim: RunClaim): Promise<boolean> {
    return holdsRun(this.db, claim);
  }

  /** Notes that the run waits. */
  async wait(
    claim: RunClaim,
    waiting: RequestCounts & {
      for: NonNullable<Run['waiting_for']>;
      until: number | null;
      /** With the moment at which it was met, in milliseconds since 1970. */
      error?: (RunError & { at: number }) | undefined;
      attempt?: number;
      stuckSince?: number | null;
      hasFailed?: boolean;
    },
  ): Promise<void> {
    const { error, attempt, stuckSince } = waiting;
    const values = {
      state: waiting.hasFailed ? ('failed' as const) : ('waiting' as const),
      waiting_for: waiting.for,
      wait_until: waiting.until,
      ...(attempt !== undefined && { attempt }),
      ...(stuckSince !== undefined && { stuck_since: stuckSince }),
      ...(error !== undefined && { error_kind: error.kind, error_detail: error.detail }),
    };
    await this.#update(claim, values, waiting, error?.at);
  }

  /**
   * Closes a run that cannot go on. The next one begins at the first page.
   *
   * @returns the run; undefined, with nothing written, when the claim does not hold
   */
  fail(
    claim: RunClaim,
    { kind, detail }: RunError,
    now: number,
    counts: RequestCounts = { requests: 0, refused: 0 },
  ): Promise<Run | undefined> {
    const values = { state: 'failed', error_kind: kind, error_detail: detail, finished_at: now } as const;
    return this.#update(claim, { ...NO_WAIT, ...values }, counts, now);
  }

  /**
   * Closes a run that has read its list to the end.
   *
   * @param held deletions that it holds back
   * @returns the run; undefined, with nothing written, when the claim does not hold
   */
  finish({ list, run: id, fence }: RunClaim, held: number, now: number): Promise<Run | undefined> {
    return this.db.transact(async (tx) => {
      await lockList(this.db, tx, list);
      const run = await tx
        .updateTable('runs')
        .set({ ...NO_ERROR, ...NO_WAIT, state: 'finished', held, finished_at: now })
        .where((eb) => eb.and({ id, fence }))
        .returningAll()
        .executeTakeFirst();
      if (run === undefined) return undefined;
      const upToDate = { ...NOT_FAILING, behind_since: null };
      await tx.updateTable('lists').set(upToDate).where('id', '=', list).execute();
      const rejected = tx.deleteFrom('rejected_records').where('list', '=', list);
      await rejected.where('run', '<', id).execute();
      return run;
    });
  }

  /** Open runs of active instances and lists whose wait is over at a moment: each must have a job. */
  open(now: number): Promise<OpenRun[]> {
    return openRuns(this.db)
      .select(['runs.id as run', 'lists.instance_id as instanceId', 'resource', 'wait_until as until'])
      .where((eb) => eb.or([eb('wait_until', 'is', null), eb('wait_until', '<=', now)]))
      .execute();
  }

  /**
   * Active instances whose list of this resource is due: it is not paused, and its last run is long enough ago.
   *
   * @param pauses milliseconds after a run, for a list without an interval of its own; after a run that failed they end
   *   sooner, for an outage of the service and for any other error
   */
  async due(
    resource: string,
    now: number,
    { intervalMs, outageMs, failedMs }: { intervalMs: number; outageMs: number; failedMs: number },
  ): Promise<string[]> {
    const interval = sql<number>`coalesce(lists.interval_minutes * 60000, ${intervalMs})`;
    const rows = await this.db
      .selectFrom('instances')
      .leftJoin('lists', (join) =>
        join
          .onRef('lists.instance_id', '=', 'instances.id')
          .on('lists.resource', '=', resource)
          .on('lists.removed_at', 'is', null),
      )
      .leftJoin('runs', (join) =>
        join.on('runs.id', '=', (eb) =>
          eb
            .selectFrom('runs as newest')
            .select(({ fn }) => fn.max('newest.id').as('id'))
            .whereRef('newest.list', '=', 'lists.id'),
        ),
      )
      .select('instances.id')
      .where('instances.status', '=', 'active')
      .where('lists.paused_at', 'is', null)
      .where((eb) =>
        eb.or([
          eb('runs.id', 'is', null),
          eb('runs.state', '=', 'ended'),
          eb(eb('runs.finished_at', '+', interval), '<=', now),
          eb.and([eb('runs.state', '=', 'failed'), eb('runs.finished_at', '<=', now - failedMs)]),
          eb.and([
            eb('runs.state', '=', 'failed'),
            eb('runs.finished_at', '<=', now - outageMs),
            eb('runs.error_kind', 'in', SERVICE_OUTAGES),
          ]),
        ]),
      )
      .execute();
    return rows.map(({ id }) => id);
  }

  /** The last whole run of a list, or the last one before another run. */
  lastFinished(list: number, before = Number.MAX_SAFE_INTEGER): Promise<Run | undefined> {
    return this.db
      .selectFrom('runs')
      .selectAll()
      .where((eb) => eb.and({ list, state: 'finished' }))
      .where('id', '<', before)
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst();
  }

  /**
   * Takes the lists of active instances that have failed since before a moment: one worker takes each list once.
   *
   * @returns each list with its last run that failed
   */
  async takeFailing(
    since: number,
    now: number,
  ): Promise<(ListKey & { since: number; run: Run | undefined })[]> {
    const rows = await this.db.durably((tx) =>
      tx
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
    await this.db.durably((tx) => tx.updateTable('runs').set({ held: 0 }).where('id', '=', run).execute());
  }

  /** Changes a list of an instance that is not disconnected. @returns whether it did; a pause never changes twice */
  #change(key: ListKey, values: Pick<Updateable<ListTable>, 'interval_minutes' | 'paused_at'>) {
    return this.db.durably(async (tx) => {
      const instance = await findInstance(tx, key.instanceId);
      if (instance === undefined || instance.status === 'disconnected') return false;
      const { paused_at } = values;
      const { numUpdatedRows } = await tx
        .updateTable('lists')
        .set(values)
        .where('id', '=', await ensureList(tx, key))
        .$if(paused_at !== undefined, (query) =>
          query.where('paused_at', paused_at === null ? 'is not' : 'is', null),
        )
        .executeTakeFirst();
      if (numUpdatedRows > 0n && paused_at != null) await raiseFences(this.db, tx, key);
      return numUpdatedRows > 0n;
    });
  }

  /** @param failedAt when the list failed, if it did: it counts as failing from its first failure on */
  #update(
    { list: id, run, fence }: RunClaim,
    values: Updateable<RunTable>,
    { requests, refused }: RequestCounts,
    failedAt?: number,
  ): Promise<Run | undefined> {
    return this.db.transact(async (tx) => {
      // Pages lock their list first, too.
      const list = failedAt === undefined ? undefined : await lockList(this.db, tx, id);
      const updated = await tx
        .updateTable('runs')
        .set((old) => ({
          ...values,
          requests: old('requests', '+', requests),
          refused: old('refused', '+', refused),
        }))
        .where((eb) => eb.and({ id: run, fence }))
        .returningAll()
        .executeTakeFirst();
      if (updated !== undefined && failedAt !== undefined && list?.failing_since === null) {
        await tx.updateTable('lists').set({ failing_since: failedAt }).where('id', '=', id).execute();
      }
      return updated;
    });
  }
}

/** Whether no other worker has taken a run over since it was claimed, and nobody paused or ended it. */
export async function holdsRun(db: Kysely<Schema>, { run, fence }: RunClaim): Promise<boolean> {
  const held = db
    .selectFrom('runs')
    .select('id')
    .where((eb) => eb.and({ id: run, fence }));
  return (await held.executeTakeFirst()) !== undefined;
}

function findInstance(db: Kysely<Schema>, id: string) {
  return db.selectFrom('instances').select('status').where('id', '=', id).executeTakeFirst();
}

/** Open runs of active instances, of lists that are neither paused nor removed. */
function openRuns(db: Kysely<Schema>) {
  return db
    .selectFrom('runs')
    .innerJoin('lists', 'lists.id', 'runs.list')
    .innerJoin('instances', 'instances.id', 'lists.instance_id')
    .where('runs.finished_at', 'is', null)
    .where('lists.paused_at', 'is', null)
    .where('lists.removed_at', 'is', null)
    .where('instances.status', '=', 'active');
}

async function startRun(tx: Transaction<Schema>, list: number, now: number, retries: boolean) {
  const ofList = tx.selectFrom('runs').where('list', '=', list);
  const open = await ofList.selectAll().where('finished_at', 'is', null).executeTakeFirst();
  const isStuck = open?.state === 'failed' && open.stuck_since !== null;
  if (open !== undefined && retries && isStuck) {
    await tx
      .updateTable('runs')
      .set({ ...NO_WAIT, finished_at: now, fence: open.fence + 1 })
      .where('id', '=', open.id)
      .execute();
  } else if (open !== undefined && retries && open.waiting_for === 'retry') {
    return tx
      .updateTable('runs')
      .set({ state: 'waiting', waiting_for: 'turn', wait_until: null, attempt: 0 })
      .where('id', '=', open.id)
      .returningAll()
      .executeTakeFirstOrThrow();
  } else if (open !== undefined) return open;
  await tx
    .updateTable('lists')
    .set({ behind_since: sql<number>`coalesce(behind_since, ${now})` })
    .where('id', '=', list)
    .execute();
  const oldest = ofList
    .select('id')
    .orderBy('id', 'desc')
    .limit(1)
    .offset(HISTORY - 1);
  await tx.deleteFrom('runs').where('list', '=', list).where('id', '<=', oldest).execute();
  return tx
    .insertInto('runs')
    .values({ list, state: 'waiting', waiting_for: 'turn', started_at: now })
    .returningAll()
    .executeTakeFirstOrThrow();
}
