import type { Database } from './database.ts';
import type { InstanceState, RunState } from './states.ts';

/** How many instances and runs are in which state. */
export interface StateCounts {
  instances: Partial<Record<InstanceState, number>>;
  /** Runs of active instances. */
  runs: Partial<Record<RunState, number>>;
}

/** Numbers over all instances, for whoever watches the app; moments are milliseconds since 1970. */
export interface StoreFigures extends StateCounts {
  /** Since when a list of an active instance has not been read to its end, the one that is behind the longest; null when none is. */
  behindSince: number | null;
  /** When the oldest refresh token in use was issued; null when there is none. */
  oldestRefreshToken: number | null;
  /** Refresh tokens whose rotation is due. */
  due: number;
  /** Those that were due long ago, and that no refresh has succeeded for since. */
  overdue: number;
}

/** Counts the states: by two queries, however many instances there are. */
export async function countStates(db: Database): Promise<StateCounts> {
  const instances = await db
    .selectFrom('instances')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  const runs = await db
    .selectFrom('runs')
    .innerJoin('instances', 'instances.id', 'runs.instance_id')
    .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
    .where('instances.status', '=', 'active')
    .groupBy('state')
    .execute();
  return {
    instances: Object.fromEntries(instances.map(({ status, count }) => [status, Number(count)])),
    runs: Object.fromEntries(runs.map(({ state, count }) => [state, Number(count)])),
  };
}

/** A run of a resource that this version of the app does not know may stand where it is: nobody works on it. */
async function findBehindSince(db: Database, resources: readonly string[]): Promise<number | null> {
  const { since } = await db
    .selectFrom('runs')
    .innerJoin('instances', 'instances.id', 'runs.instance_id')
    .select(({ fn }) => fn.min<number | null>('behind_since').as('since'))
    .where('instances.status', '=', 'active')
    .where('resource', 'in', [...resources])
    .executeTakeFirstOrThrow();
  return since;
}

/**
 * Counts. Each query reads one small table and instances by their key; none touches the records.
 *
 * @param now the service's time, in milliseconds since 1970
 * @param overdueAfterMs how long a try of a rotation may be outstanding
 * @param resources the names of those that are copied
 */
export async function readFigures(
  db: Database,
  now: number,
  overdueAfterMs: number,
  resources: readonly string[],
): Promise<StoreFigures> {
  const states = await countStates(db);
  const tokens = await db
    .selectFrom('tokens')
    .innerJoin('instances', 'instances.id', 'tokens.instance_id')
    .select(({ fn, eb }) => {
      const isDue = eb('refresh_due_at', '<=', now);
      const isOverdue = eb.and([
        eb('refresh_due_at', '<=', now - overdueAfterMs),
        eb('refreshed_at', '<=', now - overdueAfterMs),
      ]);
      return [
        fn.min('refresh_issued_at').as('oldest'),
        fn.sum<number | null>(eb.case().when(isDue).then(1).else(0).end()).as('due'),
        fn.sum<number | null>(eb.case().when(isOverdue).then(1).else(0).end()).as('overdue'),
      ];
    })
    .where('instances.status', 'in', ['active', 'paused'])
    .executeTakeFirstOrThrow();

  return {
    ...states,
    behindSince: await findBehindSince(db, resources),
    oldestRefreshToken: tokens.oldest,
    due: Number(tokens.due ?? 0),
    overdue: Number(tokens.overdue ?? 0),
  };
}
