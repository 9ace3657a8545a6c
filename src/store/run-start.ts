import { type Kysely, sql } from 'kysely';
import type { Database } from './database.ts';
import type { RunKey } from './runs.ts';
import type { Schema } from './schema.ts';

/** A run of which nothing has been done. */
export const UNSTARTED = {
  state: 'idle',
  phase: 'pages',
  fence: 0,
  cursor: null,
  pages: 0,
  records: 0,
  skipped: 0,
  deleted: 0,
  stored: 0,
  attempt: 0,
  own_tries: 0,
  own_since: null,
  waits: 0,
  stuck_since: null,
  error: null,
  waiting_until: null,
  waiting_for: null,
  started_at: null,
  finished_at: null,
  behind_since: null,
} as const;

/** How a run is started. */
export interface StartOptions {
  /** A run that is stuck gives its place up and begins anew, also while it waits for another try. */
  leavesStuck?: boolean;
  /** Only while their instance is active. */
  whileActive?: boolean;
}

/** No parked batch has to wait for longer, in milliseconds: a moment that lies further ahead was noted by another clock. */
const LONGEST_WAIT_MS = 20 * 60_000;

/**
 * Starts the runs that are not under way, all of them or none: at the first page, having seen nothing; or where one
 * stopped, when it failed on something that may pass (its cursor was kept then). Either way it tries each parked batch once.
 * What runs before have noted lies before it then, also if the clock was set back since. How long the list has been behind
 * counts on over runs that fail.
 *
 * @param keys of one instance
 * @param now milliseconds since 1970
 * @returns of each whether it was started; false when it is under way. Undefined when their instance is not, or not any
 *   more, as the options want it: none is started then
 * @throws NewerSchemaError when the schema is a newer version's by now
 */
export function startRuns(
  db: Database,
  keys: readonly RunKey[],
  now: number,
  options: StartOptions = {},
): Promise<boolean[] | undefined> {
  return db.transact(async (transaction) => {
    const [first] = keys;
    const { whileActive } = options;
    if (first && whileActive && !(await isActive(transaction, first.instanceId))) return undefined;
    const started: boolean[] = [];
    for (const key of keys) started.push(await startRun(transaction, key, now, options));
    return started;
  });
}

async function isActive(db: Kysely<Schema>, instanceId: string): Promise<boolean> {
  const active = await db
    .selectFrom('instances')
    .select('id')
    .where('id', '=', instanceId)
    .where('status', '=', 'active')
    .executeTakeFirst();
  return active !== undefined;
}

async function startRun(
  transaction: Kysely<Schema>,
  key: RunKey,
  now: number,
  { leavesStuck = false }: StartOptions,
): Promise<boolean> {
  const begun = {
    state: 'waiting',
    waiting_for: 'turn',
    attempt: 0,
    error: null,
    finished_at: null,
  } as const;
  const anew = { ...UNSTARTED, ...begun, started_at: now, behind_since: now };
  const behind = { behind_since: sql<number>`coalesce(runs.behind_since, ${now})` };
  const { fence: _fence, stored: _stored, ...restarted } = anew;
  const resumed = await transaction
    .updateTable('runs')
    .set({ ...begun, ...behind })
    .where('instance_id', '=', key.instanceId)
    .where('resource', '=', key.resource)
    .where('state', '=', 'failed')
    .where((where) => where.or([where('cursor', 'is not', null), where('phase', '=', 'deletions')]))
    .$if(leavesStuck, (query) => query.where('stuck_since', 'is', null))
    .returning(['list', 'started_at'])
    .executeTakeFirst();
  if (resumed !== undefined) {
    await letTryAgain(transaction, resumed.list, resumed.started_at ?? now, now);
    return true;
  }
  const started = await transaction
    .insertInto('runs')
    .values({ ...anew, instance_id: key.instanceId, resource: key.resource })
    .onConflict((conflict) =>
      conflict
        .columns(['instance_id', 'resource'])
        .doUpdateSet({ ...restarted, ...behind })
        .where((where) =>
          where.or([
            where('runs.state', 'in', ['idle', 'failed']),
            ...(leavesStuck
              ? [
                  where.and([
                    where('runs.waiting_for', '=', 'retry'),
                    where('runs.stuck_since', 'is not', null),
                  ]),
                ]
              : []),
          ]),
        ),
    )
    .returning('list')
    .executeTakeFirst();
  if (started === undefined) return false;
  await transaction.deleteFrom('seen_ranges').where('list', '=', started.list).execute();
  await putBefore(transaction, started.list, now);
  return true;
}

/** Puts before the start of a run what was noted before it, by a clock that was ahead. */
async function putBefore(db: Kysely<Schema>, list: number, now: number): Promise<void> {
  await db
    .updateTable('quarantine')
    .set({ seen_at: now - 1 })
    .where('list', '=', list)
    .where('seen_at', '>=', now)
    .execute();
  await letTry(db, list, now + LONGEST_WAIT_MS);
}

/**
 * Lets a run that goes on at its place try what was parked or tried since it began: a list that is full would never get
 * room otherwise. The tries are moved back by as long as the run has been under way, all of them, so that their order
 * stays; what has to wait for a moment to come, waits. If the clock was set back behind the run's start, none waits.
 */
async function letTryAgain(db: Kysely<Schema>, list: number, startedAt: number, now: number): Promise<void> {
  if (startedAt > now) return letTry(db, list, 0);
  await letTry(db, list, now + LONGEST_WAIT_MS);
  await db
    .updateTable('parked_batches')
    .set({ tried_at: sql<number>`tried_at - ${now - startedAt}` })
    .where('list', '=', list)
    .where('tried_at', '<', now)
    .execute();
}

/** Has parked batches be tried at once that were tried, or have to wait, behind a moment. */
async function letTry(db: Kysely<Schema>, list: number, behind: number): Promise<void> {
  await db
    .updateTable('parked_batches')
    .set({ tried_at: 0 })
    .where('list', '=', list)
    .where('tried_at', '>', behind)
    .execute();
}

/** Counts how long an instance's lists have been behind from a moment on, in milliseconds since 1970. */
export async function countBehindFrom(db: Kysely<Schema>, instanceId: string, from: number): Promise<void> {
  await db
    .updateTable('runs')
    .set({ behind_since: from })
    .where('instance_id', '=', instanceId)
    .where('behind_since', 'is not', null)
    .execute();
}
