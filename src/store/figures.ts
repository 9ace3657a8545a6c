import { sql } from 'kysely';
import { countRows, type Database } from './database.ts';
import { type InstanceState, type ListState, listState, type RunState } from './states.ts';

/** How many instances and lists are in which state. */
export interface StateCounts {
  instances: Partial<Record<InstanceState, number>>;
  /** Lists of active instances that are not paused themselves. */
  lists: Partial<Record<ListState, number>>;
}

/** Numbers over all instances, for monitoring. Moments are milliseconds since 1970. */
interface StoreFigures extends StateCounts {
  /** Since when the list that lags the most has not been read to its end; null when none lags. */
  behindSince: number | null;
  /** Deletions that whole runs hold back, and records that the handler could not take. */
  heldDeletions: number;
  deadLetters: number;
  /** Per consumer of this version: when its oldest pending change was made; null when nothing is pending. */
  pendingSince: Record<string, number | null>;
  /** When the oldest refresh token in use was issued; null when there is none. */
  oldestRefreshToken: number | null;
  /** Refresh tokens whose rotation was due long ago, without a successful refresh since. */
  overdue: number;
}

/** Counts the states, by two queries. */
export async function countStates(db: Database): Promise<StateCounts> {
  const instances = await db
    .selectFrom('instances')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  const newest = await activeLists(db)
    .select(
      sql<RunState | null>`(select state from runs where list = lists.id order by id desc limit 1)`.as(
        'state',
      ),
    )
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .groupBy(sql`1`)
    .execute();
  const lists: StateCounts['lists'] = {};
  for (const { state, count } of newest) lists[listState(state)] = (lists[listState(state)] ?? 0) + count;
  return { instances: Object.fromEntries(instances.map(({ status, count }) => [status, count])), lists };
}

/**
 * Reads the numbers for the metrics. Of the records, it reads one a consumer that lags, by an index.
 *
 * @param now the service's time, in milliseconds since 1970
 * @param overdueAfterMs how long a rotation may be due
 * @param resources the names of those that this version copies: nobody works on the lists of others
 */
export async function readFigures(
  db: Database,
  now: number,
  overdueAfterMs: number,
  resources: readonly string[],
  consumers: readonly string[],
): Promise<StoreFigures> {
  const overdueFrom = now - overdueAfterMs;
  const isOverdue = sql`refresh_due_at <= ${overdueFrom} and refreshed_at <= ${overdueFrom}`;
  const tokens = await db
    .selectFrom('tokens')
    .innerJoin('instances', 'instances.id', 'tokens.instance_id')
    .select(({ fn }) => fn.min<number | null>('refresh_issued_at').as('oldest'))
    .select(sql<number>`coalesce(sum(case when ${isOverdue} then 1 else 0 end), 0)`.as('overdue'))
    .where('instances.status', 'in', ['active', 'paused'])
    .executeTakeFirstOrThrow();
  const { held } = await db
    .selectFrom('lists')
    .select(
      sql<number>`coalesce(sum((select held from runs where list = lists.id and state = 'finished'
        order by id desc limit 1)), 0)`.as('held'),
    )
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow();
  const { since } = await activeLists(db)
    .select(({ fn }) => fn.min<number | null>('behind_since').as('since'))
    .where('resource', 'in', [...resources])
    .executeTakeFirstOrThrow();
  const pending = await activeLists(db)
    .innerJoin('consumers', 'consumers.list', 'lists.id')
    .select('consumer')
    .select(
      // A change's number is the clock in microseconds when it was made.
      sql<number | null>`min((select min(change_seq) from records
        where list = lists.id and change_seq > consumers.cursor)) / 1000`.as('since'),
    )
    .where('consumer', 'in', [...consumers])
    .whereRef('lists.change_seq', '>', 'consumers.cursor')
    .groupBy('consumer')
    .execute();
  const none = consumers.map((consumer) => ({ consumer, since: null }));
  return {
    ...(await countStates(db)),
    pendingSince: Object.fromEntries([...none, ...pending].map(({ consumer, since }) => [consumer, since])),
    heldDeletions: held,
    deadLetters: await countRows(db.selectFrom('dead_letters')),
    behindSince: since,
    oldestRefreshToken: tokens.oldest,
    overdue: tokens.overdue,
  };
}

/** Lists of active instances that are neither paused nor removed. */
function activeLists(db: Database) {
  return db
    .selectFrom('lists')
    .innerJoin('instances', 'instances.id', 'lists.instance_id')
    .where('instances.status', '=', 'active')
    .where('removed_at', 'is', null)
    .where('paused_at', 'is', null);
}
