import {
  type Insertable,
  type Kysely,
  type Selectable,
  sql,
  type Transaction,
  type Updateable,
} from 'kysely';
import { Store, statement } from './database.ts';
import { HISTORY, noteFailure, readDays, removeOldRuns } from './days.ts';
import {
  ensureList,
  isActive,
  type List,
  type ListClaim,
  type ListKey,
  lockClaimed,
  lockList,
  NO_WAIT,
  nextStart,
} from './lists.ts';
import type { DayTable, ListTable, RunTable, Schema } from './schema.ts';
import type { ErrorKind } from './states.ts';

export type { List, ListClaim, ListKey };
export type Run = Selectable<RunTable>;

/** A list that needs a job, from `until` on (milliseconds since 1970) if it waits. */
export interface ListJob extends ListKey {
  list: number;
  until: number | null;
  /** Pages of its open full run; undefined for a check. */
  pages: number | undefined;
}

/** What a worker has claimed: the open full run of a list, or else a check of it. */
interface Claimed {
  claim: ListClaim;
  list: List;
  run: Run | undefined;
}

/** What a check that changed something leaves in the history. */
type CheckFacts = Omit<Insertable<RunTable>, 'list' | 'kind' | 'state'>;

/** A list with its newest full run. */
export interface ListStatus extends List {
  run: Run | undefined;
}

/** When the next full run and the next check of a list begin, in milliseconds since 1970, and how often checks do. */
export type NextStarts = Pick<List, 'full_due_at' | 'check_due_at' | 'check_every'>;

/** What is left when a full run has come to its end. */
export interface FullEnd extends RequestCounts {
  /** Live records that it did not see, and those of them whose deletion is held. */
  missing: number;
  held: number;
  /** The first of the full runs in a row that held. */
  heldRun: number | null;
  /** Whether another full run begins at once. */
  isRepeated: boolean;
}

/** Why a run waits or has failed. */
export interface RunError {
  kind: ErrorKind;
  detail: string;
}

/** Requests that brought no page, and how many of them the service refused. */
export interface RequestCounts {
  requests: number;
  refused: number;
}

/** A list whose pages come. */
const NOT_FAILING = { failing_since: null, failing_told_at: null } as const;

const NO_ERROR = { error_kind: null, error_detail: null, attempt: 0, stuck_since: null } as const;

export class RunStore extends Store {
  readonly #holds = statement(this.db.dialect, 'select id from lists where id = :list and fence = :fence');

  /** The lists of an instance, each with its newest full run. An open run is always the newest. */
  lists(instanceId: string): Promise<ListStatus[]> {
    return this.listsOf([instanceId]);
  }

  /** The lists of several instances. */
  async listsOf(instanceIds: readonly string[]): Promise<ListStatus[]> {
    const own = this.db
      .selectFrom('lists')
      .where('instance_id', 'in', ['', ...instanceIds])
      .where('removed_at', 'is', null);
    const newest = sql<number>`(select max(id) from runs where list = lists.id and kind = 'full')`;
    // The runs first: what the end of a run leaves in its list must not be older than the run.
    const runs = await this.db
      .selectFrom('runs')
      .selectAll()
      .where('id', 'in', own.select(newest.as('id')))
      .execute();
    const byList = new Map(runs.map((run) => [run.list, run]));
    const lists = await own.selectAll().execute();
    return lists.map((list) => ({ ...list, run: byList.get(list.id) }));
  }

  list(id: number): Promise<List | undefined> {
    return this.db.selectFrom('lists').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** The last full runs of a list, or the last checks that found something, the newest first. */
  history(list: number, kind: Run['kind'], limit = HISTORY): Promise<Run[]> {
    return lastRuns(this.db, list, kind, limit);
  }

  /** The sums of a list's last days: see {@link readDays}. */
  days(list: number, now: number): Promise<Map<number, DayTable>> {
    return readDays(this.db, list, now);
  }

  find(run: number): Promise<Run | undefined> {
    return this.db.selectFrom('runs').selectAll().where('id', '=', run).executeTakeFirst();
  }

  /**
   * Gives each of these lists of one instance an open full run. A check of the list that is under way writes nothing more.
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
  ): Promise<ListJob[] | undefined> {
    return this.db.transact(async (tx) => {
      const instance = await findInstance(tx, instanceId);
      if (instance?.status !== 'active') return undefined;
      const jobs: ListJob[] = [];
      for (const resource of resources) {
        const list = await lockList(this.db, tx, await ensureList(tx, { instanceId, resource }));
        if (list === undefined || list.paused_at !== null) continue;
        const { pages, wait_until } = await startRun(tx, list, now, { retries });
        jobs.push({ instanceId, resource, list: list.id, until: wait_until, pages });
      }
      return jobs;
    });
  }

  /**
   * Takes over a list of an active instance, unless it is paused: its open full run, or else the check that is due. Its
   * earlier holder cannot commit any more.
   *
   * @param key.list the id that the list had when its job was made: a new install has another one
   * @returns undefined when there is nothing to do
   */
  claim(key: ListKey & { list?: number }, now: number): Promise<Claimed | undefined> {
    return this.db.transact(async (tx) => {
      // One statement also locks the row: a pause waits for it, or has come first.
      const list = await tx
        .updateTable('lists')
        .set((old) => ({ fence: old('fence', '+', 1) }))
        .where((eb) => eb.and({ instance_id: key.instanceId, resource: key.resource }))
        .$if(key.list !== undefined, (query) => query.where('id', '=', key.list ?? 0))
        .where(isActive)
        .returningAll()
        .executeTakeFirst();
      if (list === undefined) return undefined;
      const { id, fence, commits, check_due_at, full_run } = list;
      const run = await tx
        .updateTable('runs')
        .set({ ...NO_WAIT, state: 'running' })
        .where('list', '=', id)
        .where('finished_at', 'is', null)
        .returningAll()
        .executeTakeFirst();
      const seenBy = run?.id ?? full_run;
      const isCheckDue = check_due_at !== null && check_due_at <= now;
      if (seenBy !== null && (run !== undefined || isCheckDue)) {
        return { claim: { list: id, run: seenBy, fence, commits }, list, run };
      }
      const next = { due_at: nextStart(list) };
      await tx.updateTable('lists').set(next).where('id', '=', id).execute();
      return undefined;
    });
  }

  /** Whether the claim still holds. If not, no request may be sent for it. */
  async holds({ list, fence }: ListClaim): Promise<boolean> {
    const { rows } = await this.db.executeQuery(this.#holds({ list, fence }));
    return rows.length > 0;
  }

  async wait(
    claim: ListClaim,
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
    await this.#update(claim, values, waiting, error?.at, () => ({ due_at: waiting.until ?? 0 }));
  }

  /**
   * Closes a full run that cannot go on. The next one begins at the first page.
   *
   * @param nextAt when it begins, in milliseconds since 1970
   * @returns the run; undefined, with nothing written, when the claim does not hold
   */
  fail(
    claim: ListClaim,
    { kind, detail }: RunError,
    now: number,
    nextAt: number,
    counts: RequestCounts = { requests: 0, refused: 0 },
  ): Promise<Run | undefined> {
    const values = { state: 'failed', error_kind: kind, error_detail: detail, finished_at: now } as const;
    return this.#update(claim, { ...NO_WAIT, ...values }, counts, now, ({ full_run, check_due_at }) => {
      // There is nothing to check before a list was read to its end.
      const next = { full_due_at: nextAt, check_due_at: full_run === null ? null : check_due_at };
      return { ...next, due_at: nextStart(next) };
    });
  }

  /**
   * Closes a full run that has read its list to the end.
   *
   * @returns the run; undefined, with nothing written, when the claim does not hold
   */
  finish(
    claim: ListClaim,
    { missing, held, heldRun, isRepeated, ...counts }: FullEnd,
    next: NextStarts,
    now: number,
  ): Promise<Run | undefined> {
    return this.db.transact(async (tx) => {
      const list = await lockClaimed(this.db, tx, claim);
      if (list === undefined) return undefined;
      const id = claim.run;
      const ended = { ...NO_ERROR, ...NO_WAIT, state: 'finished', missing, held, finished_at: now } as const;
      const run = await updateRun(tx, id, ended, counts)
        // Otherwise a crash of the database took back the last page.
        .where('cursor', 'is', null)
        .where('pages', '>', 0)
        .executeTakeFirst();
      if (run === undefined) return undefined;
      await tx
        .updateTable('lists')
        .set({
          ...NOT_FAILING,
          ...next,
          due_at: nextStart(next),
          behind_since: null,
          full_run: id,
          checked_at: now,
          full_at: now,
          caught: 0,
          missing,
          held,
          held_run: heldRun,
          held_since: heldRun === null ? null : heldRun === list.held_run ? list.held_since : now,
        })
        .where('id', '=', list.id)
        .execute();
      if (list.held_run !== null && heldRun === null) await endHolds(tx, list.id);
      const rejected = tx.deleteFrom('rejected_records').where('list', '=', list.id);
      await rejected.where('run', '<', id).execute();
      if (isRepeated) await startRun(tx, list, now, { isRepeat: true });
      return run;
    });
  }

  /**
   * Ends a check. Its row comes into the history if it changed anything.
   *
   * @param isInRun whether a full run goes on afterwards
   * @param isUnsure whether it did not read the first pages to what is known: that run deletes nothing
   * @returns false, with nothing written, when the claim does not hold
   */
  endCheck(
    claim: ListClaim,
    { isInRun, isUnsure, found }: { isInRun: boolean; isUnsure: boolean; found?: CheckFacts | undefined },
    values: Updateable<ListTable> & { check_due_at: number | null },
  ): Promise<boolean> {
    return this.db.transact(async (tx) => {
      const list = await lockClaimed(this.db, tx, claim);
      if (list === undefined) return false;
      const due_at = isInRun ? list.due_at : nextStart({ ...list, check_due_at: values.check_due_at });
      const next = { ...values, due_at };
      await tx.updateTable('lists').set(next).where('id', '=', list.id).execute();
      if (isInRun && isUnsure) {
        await tx.updateTable('runs').set({ is_unsure: 1 }).where('id', '=', claim.run).execute();
      }
      if (found !== undefined) {
        await removeOldRuns(tx, [list.id], 'check', found.finished_at ?? 0);
        const run = { ...found, list: list.id, kind: 'check', state: 'finished' } as const;
        await tx.insertInto('runs').values(run).execute();
      }
      return true;
    });
  }

  /** Notes that the deletions that full runs held are done. */
  async releaseHeld({ id }: List): Promise<void> {
    const released = { held: 0, held_run: null, held_since: null };
    await this.db.durably(async (tx) => {
      await tx
        .updateTable('lists')
        .set((old) => ({ ...released, missing: old('missing', '-', old.ref('held')) }))
        .where('id', '=', id)
        .execute();
      await endHolds(tx, id);
    });
  }

  /**
   * @param failedAt when the list failed, if it did: it counts as failing from its first failure on
   * @param ofList what becomes of the list's row
   */
  #update(
    claim: ListClaim,
    values: Updateable<RunTable>,
    counts: RequestCounts,
    failedAt: number | undefined,
    ofList: (list: List) => Updateable<ListTable>,
  ): Promise<Run | undefined> {
    return this.db.transact(async (tx) => {
      const list = await lockClaimed(this.db, tx, claim);
      if (list === undefined) return undefined;
      const updated = await updateRun(tx, claim.run, values, counts).executeTakeFirst();
      if (updated === undefined) return undefined;
      if (values.state === 'failed' && failedAt !== undefined)
        await noteFailure(tx, { id: list.id }, failedAt);
      const failing = failedAt !== undefined && list.failing_since === null && { failing_since: failedAt };
      const changed = { ...ofList(list), ...failing };
      await tx.updateTable('lists').set(changed).where('id', '=', list.id).execute();
      return updated;
    });
  }
}

/** The last full runs of a list, or its last checks that found something, the newest first. */
export function lastRuns(db: Kysely<Schema>, list: number, kind: Run['kind'], limit: number): Promise<Run[]> {
  const runs = db
    .selectFrom('runs')
    .selectAll()
    .where((eb) => eb.and({ list, kind }));
  return runs.orderBy('id', 'desc').limit(limit).execute();
}

export function findInstance(db: Kysely<Schema>, id: string) {
  return db.selectFrom('instances').select('status').where('id', '=', id).executeTakeFirst();
}

/** Changes an open run, and counts requests that brought no page. */
function updateRun(
  tx: Transaction<Schema>,
  run: number,
  values: Updateable<RunTable>,
  counts: RequestCounts,
) {
  return tx
    .updateTable('runs')
    .set(values)
    .set((old) => ({
      requests: old('requests', '+', counts.requests),
      refused: old('refused', '+', counts.refused),
    }))
    .where('id', '=', run)
    .where('finished_at', 'is', null)
    .returningAll();
}

/** Gives a list that is locked an open full run. */
async function startRun(
  tx: Transaction<Schema>,
  { id: list }: Pick<List, 'id'>,
  now: number,
  { retries = false, isRepeat = false }: { retries?: boolean; isRepeat?: boolean },
): Promise<Run> {
  const ofList = tx.selectFrom('runs').where((eb) => eb.and({ list, kind: 'full' }));
  const open = await ofList.selectAll().where('finished_at', 'is', null).executeTakeFirst();
  const isDue = { full_due_at: now, due_at: now };
  if (open !== undefined && !(retries && open.state === 'failed' && open.stuck_since !== null)) {
    if (!retries || open.waiting_for !== 'retry') return open;
    await tx.updateTable('lists').set(isDue).where('id', '=', list).execute();
    return tx
      .updateTable('runs')
      .set({ state: 'waiting', waiting_for: 'turn', wait_until: null, attempt: 0 })
      .where('id', '=', open.id)
      .returningAll()
      .executeTakeFirstOrThrow();
  }
  if (open !== undefined) {
    const closed = tx.updateTable('runs').set({ ...NO_WAIT, finished_at: now });
    await closed.where('id', '=', open.id).execute();
  }
  const [run] = await startRuns(tx, [list], now, isRepeat);
  if (run === undefined) throw new Error(`The list ${list} got no run.`);
  return run;
}

/** Gives lists that are locked, and have no open full run, a new one each. */
export async function startRuns(
  tx: Transaction<Schema>,
  lists: readonly number[],
  now: number,
  isRepeat = false,
): Promise<Run[]> {
  if (lists.length === 0) return [];
  const begun = await tx
    .updateTable('lists')
    .set((old) => ({
      full_due_at: now,
      due_at: now,
      fence: old('fence', '+', 1),
      check_after: 0,
      behind_since: sql<number>`coalesce(behind_since, ${now})`,
    }))
    .where('id', 'in', [...lists])
    .returning(['id', 'full_run'])
    .execute();
  await removeOldRuns(tx, lists, 'full', now);
  const facts = { waiting_for: 'turn', started_at: now, is_repeat: isRepeat ? 1 : 0 } as const;
  return tx
    .insertInto('runs')
    .values(
      begun.map(({ id: list, full_run }) => {
        const is_first = full_run === null ? (1 as const) : (0 as const);
        return { list, state: 'waiting' as const, is_first, ...facts };
      }),
    )
    .returningAll()
    .execute();
}

/** Full runs of the history hold nothing any more. */
async function endHolds(tx: Transaction<Schema>, list: number): Promise<void> {
  await tx.updateTable('runs').set({ held: 0 }).where('list', '=', list).where('held', '>', 0).execute();
}
