import { sql } from 'kysely';
import type { Database } from './database.ts';
import { type InstanceState, type ListState, listState, type RunState } from './states.ts';

/** How many instances and lists are in which state. */
export interface StateCounts {
  instances: Partial<Record<InstanceState, number>>;
  /** Lists of active instances that are not paused themselves. */
  lists: Partial<Record<ListState, number>>;
}

/** Numbers over all instances, for whoever watches the app; moments are milliseconds since 1970. */
interface StoreFigures extends StateCounts {
  /**
   * Since when a list of an active instance, unless it is paused, has not been read to its end: the one that is behind the
   * longest; null when none is.
   */
  behindSince: number | null;
  /** Deletions that whole runs hold back, and records that the handler could not take. */
  heldDeletions: number;
  deadLetters: number;
  /** When the oldest refresh token in use was issued; null when there is none. */
  oldestRefreshToken: number | null;
  /** Refresh tokens whose rotation was due long ago, and that no refresh has succeeded for since. */
  overdue: number;
}

/** Counts the states: by two queries, however many instances there are. */
export async function countStates(db: Database): Promise<StateCounts> {
  const instances = await db
    .selectFrom('instances')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  const newest = await db
    .selectFrom('lists')
    .innerJoin('instances', 'instances.id', 'lists.instance_id')
    .select([
      sql<RunState | null>`(select state from runs where runs.list = lists.id order by runs.id desc limit 1)`.as(
        'state',
      ),
      ({ fn }) => fn.countAll<number>().as('count'),
    ])
    .where('instances.status', '=', 'active')
    .where('lists.removed_at', 'is', null)
    .where('paused_at', 'is', null)
    .groupBy(sql`1`)
    .execute();
  const lists: StateCounts['lists'] = {};
  for (const { state, count } of newest) {
    lists[listState(state)] = (lists[listState(state)] ?? 0) + Number(count);
  }
  return {
    instances: Object.fromEntries(instances.map(({ status, count }) => [status, Number(count)])),
    lists,
  };
}

/** A run of a resource that this version of the app does not know may stand where it is: nobody works on it. */
async function findBehindSince(db: Database, resources: readonly string[]): Promise<number | null> {
  const { since } = await db
    .selectFrom('lists')
    .innerJoin('instances', 'instances.id', 'lists.instance_id')
    .select(({ fn }) => fn.min<number | null>('behind_since').as('since'))
    .where('instances.status', '=', 'active')
    .where('removed_at', 'is', null)
    .where('paused_at', 'is', null)
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
      const isOverdue = eb.and([
        eb('refresh_due_at', '<=', now - overdueAfterMs),
        eb('refreshed_at', '<=', now - overdueAfterMs),
      ]);
      return [
        fn.min('refresh_issued_at').as('oldest'),
        fn.sum<number | null>(eb.case().when(isOverdue).then(1).else(0).end()).as('overdue'),
      ];
    })
    .where('instances.status', 'in', ['active', 'paused'])
    .executeTakeFirstOrThrow();

  const { held } = await db
    .selectFrom('lists')
    .select(
      sql<number | null>`sum((select held from runs where runs.list = lists.id and state = 'finished'
        order by runs.id desc limit 1))`.as('held'),
    )
    .where('lists.removed_at', 'is', null)
    .executeTakeFirstOrThrow();
  const letters = await db
    .selectFrom('dead_letters')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();

  return {
    ...states,
    heldDeletions: Number(held ?? 0),
    deadLetters: Number(letters.count),
    behindSince: await findBehindSince(db, resources),
    oldestRefreshToken: tokens.oldest,
    overdue: Number(tokens.overdue ?? 0),
  };
}
