import { type Kysely, sql } from 'kysely';
import { countRows, type Database } from './database.ts';
import { isActive } from './lists.ts';
import { UNFINISHED } from './outbox.ts';
import type { Schema } from './schema.ts';
import { type InstanceState, type ListState, listState, type RunState, type WriteState } from './states.ts';

/** How many instances and lists are in which state. */
export interface StateCounts {
  instances: Partial<Record<InstanceState, number>>;
  /** Lists of active instances that are not paused themselves. */
  lists: Partial<Record<ListState, number>>;
}

/** Numbers over all instances, for monitoring. Moments are milliseconds since 1970. */
interface StoreFigures extends StateCounts {
  /** When the list that was checked longest ago was checked; null without lists. */
  checkedAt: number | null;
  /** Since when the list that fails longest has failed; null while none does. */
  failingSince: number | null;
  /** Deletions that full runs hold back, and records that the handler could not take. */
  heldDeletions: number;
  deadLetters: number;
  /** Writes to the service that are not finished, by state, and when the oldest one that waits was made. */
  writes: Partial<Record<WriteState, number>>;
  writesSince: number | null;
  /** Per consumer of this version: when its oldest pending change was made; null when nothing is pending. */
  pendingSince: Record<string, number | null>;
  /** When the oldest refresh token in use was issued; null when there is none. */
  oldestRefreshToken: number | null;
  /** Refresh tokens whose rotation was due long ago, without a successful refresh since. */
  overdue: number;
}

/** The lists whose newest full run has failed, open or not. */
export function failedLists(db: Kysely<Schema>) {
  return db
    .selectFrom('runs as failed')
    .select('failed.list')
    .where((eb) => eb.and({ 'failed.state': 'failed' as const, 'failed.kind': 'full' as const }))
    .where(({ not, exists, selectFrom }) => {
      const newer = selectFrom('runs as newer').select('newer.id').whereRef('newer.list', '=', 'failed.list');
      return not(exists(newer.where('newer.kind', '=', 'full').whereRef('newer.id', '>', 'failed.id')));
    });
}

/** Counts the states, by two queries. */
export async function countStates(db: Database): Promise<StateCounts> {
  const instances = await db
    .selectFrom('instances')
    .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
    .groupBy('status')
    .execute();
  const newest = await db
    .selectFrom('lists')
    .leftJoin('runs', (join) => join.onRef('runs.list', '=', 'lists.id').on('finished_at', 'is', null))
    .where(isActive)
    .select((eb) => {
      const ended = eb.case().when('lists.id', 'in', failedLists(db)).then('failed').else('finished').end();
      return eb.fn.coalesce('state', sql<RunState>`${ended}`).as('state');
    })
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
  // After a disconnect nobody has to act.
  const connected = db.selectFrom('instances').select('id').where('status', '!=', 'disconnected');
  const { held } = await db
    .selectFrom('lists')
    .select(sql<number>`coalesce(sum(held), 0)`.as('held'))
    .where('removed_at', 'is', null)
    .where('instance_id', 'in', connected)
    .executeTakeFirstOrThrow();
  const active = db.selectFrom('lists').where(isActive);
  const { checkedAt, failingSince } = await active
    // A list that was never read counts from the start of its first run.
    .select(sql<number | null>`min(coalesce(checked_at, behind_since))`.as('checkedAt'))
    .select(({ fn }) => fn.min<number | null>('failing_since').as('failingSince'))
    .where('resource', 'in', [...resources])
    .executeTakeFirstOrThrow();
  const pending = await active
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
  const writes = await db
    .selectFrom('outbox')
    .select(({ fn }) => ['state', fn.countAll<number>().as('count'), fn.min('created_at').as('since')])
    .where(UNFINISHED)
    .where('instance_id', 'in', connected)
    .groupBy('state')
    .execute();
  const waiting = writes.filter(({ state }) => state === 'pending' || state === 'sending');
  const none = consumers.map((consumer) => ({ consumer, since: null }));
  return {
    ...(await countStates(db)),
    pendingSince: Object.fromEntries([...none, ...pending].map(({ consumer, since }) => [consumer, since])),
    writes: Object.fromEntries(writes.map(({ state, count }) => [state, count])),
    writesSince: waiting.length === 0 ? null : Math.min(...waiting.map(({ since }) => since)),
    heldDeletions: held,
    deadLetters: await countRows(
      db
        .selectFrom('dead_letters')
        .where('list', 'in', db.selectFrom('lists').select('id').where('instance_id', 'in', connected)),
    ),
    checkedAt,
    failingSince,
    oldestRefreshToken: tokens.oldest,
    overdue: tokens.overdue,
  };
}
