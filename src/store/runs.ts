import type Sqlite from 'better-sqlite3';
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Database } from './database.ts';
import { countBehindFrom, type StartOptions, startRuns } from './run-start.ts';
import type { RunTable } from './schema.ts';

export type Run = Selectable<RunTable>;

/** Names a run: one instance, one resource. */
export interface RunKey {
  instanceId: string;
  resource: string;
}

/** The list of an instance's id and a resource, which are bound in its place: for a prepared statement. */
export const LIST_OF = '(select list from runs where instance_id = ? and resource = ?)';

/** A run that must have a job, and until when it waits (milliseconds since 1970), if it does. */
export interface UnfinishedRun extends RunKey {
  until?: number;
}

/** A run that a worker holds: with the fence that its commits must carry. */
export interface RunClaim extends RunKey {
  fence: number;
}

/**
 * The table of runs. A run goes idle → waiting → running → idle; it waits (for the limit, for a retry, for its
 * turn) as often as it must, and ends as failed when its retries are used up. `fence` rises with every worker
 * that takes the run over, and only the newest worker may write.
 */
export class RunStore {
  readonly #db: Database;
  readonly #holds: Sqlite.Statement<[RunClaim], unknown>;

  constructor(db: Database) {
    this.#db = db;
    // Not as a join: SQLite would plan that anew whenever parameters are bound, which takes five times as long as the search.
    this.#holds = db.prepare(`
      select 1 from runs
      where instance_id = :instanceId and resource = :resource and fence = :fence
        and (select status from instances where id = :instanceId) = 'active'`);
  }

  find(key: RunKey): Promise<Run | undefined> {
    return this.#db
      .selectFrom('runs')
      .selectAll()
      .where('instance_id', '=', key.instanceId)
      .where('resource', '=', key.resource)
      .executeTakeFirst();
  }

  list(instanceId: string): Promise<Run[]> {
    return this.#db.selectFrom('runs').selectAll().where('instance_id', '=', instanceId).execute();
  }

  /** Starts a run that is not under way, as {@link startRuns} does. */
  async start(key: RunKey, now: number, options?: StartOptions): Promise<boolean> {
    const started = await this.startAll([key], now, options);
    return started?.[0] ?? false;
  }

  /** Starts what is not under way of these runs of one instance, as {@link startRuns} does. */
  startAll(keys: readonly RunKey[], now: number, options?: StartOptions): Promise<boolean[] | undefined> {
    return startRuns(this.#db, keys, now, options);
  }

  /**
   * Takes an unfinished run of an active instance over: whoever held it before cannot commit any more. While an
   * older copy of the instance is being removed, it cannot be taken: the next sweep finds it again.
   *
   * @returns the run with its new fence, or undefined when there is nothing to do
   */
  claim(key: RunKey): Promise<Run | undefined> {
    return this.#db
      .updateTable('runs')
      .set({ fence: sql<number>`fence + 1`, state: 'running', waiting_for: null, waiting_until: null })
      .where('instance_id', '=', key.instanceId)
      .where('resource', '=', key.resource)
      .where('state', 'in', ['waiting', 'running'])
      .where((where) =>
        where.exists(
          where
            .selectFrom('instances')
            .select('id')
            .whereRef('instances.id', '=', 'runs.instance_id')
            .where('status', '=', 'active'),
        ),
      )
      .where((where) =>
        where.not(
          where.exists(
            where
              .selectFrom('removals')
              .select('instance_id')
              .whereRef('removals.instance_id', '=', 'runs.instance_id'),
          ),
        ),
      )
      .returningAll()
      .executeTakeFirst();
  }

  /** Whether the claim is still the newest, and its instance active: else nothing is to be sent or done for it any more. */
  holds({ instanceId, resource, fence }: RunClaim): Promise<boolean> {
    return this.#db.atOnce(() => this.#holds.get({ instanceId, resource, fence }) !== undefined);
  }

  /** Notes that the run waits, for what, and until when (milliseconds since 1970). */
  wait(
    claim: RunClaim,
    waiting: {
      for: NonNullable<Run['waiting_for']>;
      until: number | null;
      attempt?: number;
      /** Of the own logic on the next batch: how often it has failed, and since when (milliseconds since 1970). */
      own?: { tries: number; since: number };
      /** How many waits the service has asked for in a row. */
      waits?: number;
      /** Since when the run is stuck at its place (milliseconds since 1970). */
      stuckSince?: number | null;
      error?: string | null;
    },
  ): Promise<boolean> {
    return this.#update(claim, {
      state: 'waiting',
      waiting_for: waiting.for,
      waiting_until: waiting.until,
      ...(waiting.attempt === undefined ? {} : { attempt: waiting.attempt }),
      ...(waiting.own === undefined ? {} : { own_tries: waiting.own.tries, own_since: waiting.own.since }),
      ...(waiting.waits === undefined ? {} : { waits: waiting.waits }),
      ...(waiting.stuckSince === undefined ? {} : { stuck_since: waiting.stuckSince }),
      ...(waiting.error === undefined ? {} : { error: waiting.error }),
    });
  }

  /** Sets back how often the own logic was tried with the next batch: the last one says nothing about it. */
  setOwnTries(claim: RunClaim, tries: number): Promise<boolean> {
    return this.#update(claim, { own_tries: tries });
  }

  /** Notes that a run which has waited in its slice's midst goes on. */
  goOn(claim: RunClaim): Promise<boolean> {
    return this.#update(claim, { state: 'running', waiting_for: null, waiting_until: null, error: null });
  }

  /**
   * Ends the run as failed.
   *
   * @param failure `keepsPlace` whether the next start may go on where this one stopped; `stuckSince` since when the run
   *   is stuck there (milliseconds since 1970), if it is
   */
  fail(
    claim: RunClaim,
    failure: { error: string; keepsPlace: boolean; stuckSince?: number | null; now: number },
  ): Promise<boolean> {
    return this.#update(claim, {
      state: 'failed',
      error: failure.error,
      waiting_for: null,
      waiting_until: null,
      finished_at: failure.now,
      ...(failure.stuckSince === undefined ? {} : { stuck_since: failure.stuckSince }),
      ...(failure.keepsPlace ? {} : { cursor: null, phase: 'pages' as const, waits: 0, stuck_since: null }),
    });
  }

  /** Ends the run as finished: every page was read, and what it did not see is marked as deleted. */
  finish(claim: RunClaim, now: number): Promise<boolean> {
    return this.#update(claim, {
      state: 'idle',
      phase: 'pages',
      cursor: null,
      attempt: 0,
      waits: 0,
      stuck_since: null,
      error: null,
      waiting_for: null,
      waiting_until: null,
      finished_at: now,
      behind_since: null,
    });
  }

  /** Unfinished runs of active instances: each must have a job. */
  async unfinished(): Promise<UnfinishedRun[]> {
    const rows = await this.#db
      .selectFrom('runs')
      .innerJoin('instances', 'instances.id', 'runs.instance_id')
      .select(['runs.instance_id', 'runs.resource', 'runs.waiting_until'])
      .where('runs.state', 'in', ['waiting', 'running'])
      .where('instances.status', '=', 'active')
      .execute();
    return rows.map(({ instance_id: instanceId, resource, waiting_until: until }) => ({
      instanceId,
      resource,
      ...(until !== null && { until }),
    }));
  }

  /** Counts anew how long an instance's lists have been behind: nothing was to be done for them until now. */
  async countAnew(instanceId: string, now: number): Promise<void> {
    await this.#db.transact((transaction) => countBehindFrom(transaction, instanceId, now));
  }

  /**
   * Takes it that runs which are said to have ended later than now have ended now: the clock was set back since, and the
   * next would not start for as much longer. Nor has a list been behind since a moment that is yet to come: nobody would
   * be told for as much longer.
   *
   * @param now milliseconds since 1970
   */
  async endNoLater(now: number): Promise<void> {
    const isLater = await this.#db
      .selectFrom('runs')
      .select('list')
      .where((where) => where.or([where('finished_at', '>', now), where('behind_since', '>', now)]))
      .executeTakeFirst();
    // There is hardly ever one: nobody waits for a write.
    if (isLater === undefined) return;
    await this.#db.transact(async (transaction) => {
      for (const column of ['finished_at', 'behind_since'] as const) {
        await transaction
          .updateTable('runs')
          .set({ [column]: now })
          .where(column, '>', now)
          .execute();
      }
    });
  }

  /**
   * What is to be started: a resource of active instances that never ran, or whose last run ended long enough ago.
   *
   * @param finishedBefore milliseconds since 1970: finished runs from before are due
   * @param failedBefore likewise for failed ones
   */
  async due(resource: string, finishedBefore: number, failedBefore: number): Promise<RunKey[]> {
    const rows = await this.#db
      .selectFrom('instances')
      .leftJoin('runs', (join) =>
        join.onRef('runs.instance_id', '=', 'instances.id').on('runs.resource', '=', resource),
      )
      .select('instances.id')
      .where('instances.status', '=', 'active')
      .where((where) =>
        where.or([
          where('runs.state', 'is', null),
          where.and([where('runs.state', '=', 'idle'), where('runs.finished_at', 'is', null)]),
          where.and([where('runs.state', '=', 'idle'), where('runs.finished_at', '<=', finishedBefore)]),
          where.and([where('runs.state', '=', 'failed'), where('runs.finished_at', '<=', failedBefore)]),
        ]),
      )
      .execute();
    return rows.map((row) => ({ instanceId: row.id, resource }));
  }

  async #update(claim: RunClaim, values: Updateable<RunTable>): Promise<boolean> {
    const result = await this.#db
      .updateTable('runs')
      .set(values)
      .where('instance_id', '=', claim.instanceId)
      .where('resource', '=', claim.resource)
      .where('fence', '=', claim.fence)
      .executeTakeFirst();
    return result.numUpdatedRows > 0n;
  }
}
