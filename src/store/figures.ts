import { type Kysely, sql } from 'kysely';
import { addMonths, REFRESH_TOKEN_LIFETIME_MONTHS } from '../contract/lifetimes.ts';
import { countRows, type Database } from './database.ts';
import { isActive } from './lists.ts';
import { UNFINISHED } from './outbox.ts';
import type { Schema } from './schema.ts';
import { type InstanceState, type ListState, listState, type RunState } from './states.ts';

/** How many instances and lists are in which state. */
export interface StateCounts {
  instances: Partial<Record<InstanceState, number>>;
  /** Lists of active instances that are not paused themselves. */
  lists: Partial<Record<ListState, number>>;
}

/** A rotation is overdue this long after its time, in milliseconds. */
export const OVERDUE_AFTER_MS = 2 * 60 * 60_000;

/** An alarm on a missing state needs a zero. */
const NO_INSTANCES = { active: 0, paused: 0, needs_reauthorization: 0, disconnected: 0 };
const NO_LISTS = { idle: 0, waiting: 0, running: 0, failed: 0 };
const NO_WRITES = { pending: 0, sending: 0, refused: 0, unknown: 0 };

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
 * Reads the metrics that only the store knows. Of the records, it reads one a consumer that lags, by an index.
 *
 * @param work.resources those that this version copies: nobody works on the lists of others
 * @param serviceNow the service's time, in milliseconds since 1970; `now` is our own
 * @returns numbers over all instances, by the names of their gauges
 */
export async function readFigures(
  db: Database,
  work: { resources: readonly { name: string }[]; consumers: readonly { name: string }[] },
  serviceNow: number,
  now = Date.now(),
) {
  const resources = work.resources.map(({ name }) => name);
  const consumers = work.consumers.map(({ name }) => name);
  const age = (since: number | null) => (since === null ? 0 : Math.max(0, now - since) / 1_000);
  const overdueFrom = serviceNow - OVERDUE_AFTER_MS;
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
    .where('resource', 'in', resources)
    .executeTakeFirstOrThrow();
  const pending = await active
    .innerJoin('consumers', 'consumers.list', 'lists.id')
    .select('consumer')
    .select(
      // A change's number is the clock in microseconds when it was made.
      sql<number | null>`min((select min(change_seq) from records
        where list = lists.id and change_seq > consumers.cursor)) / 1000`.as('since'),
    )
    .where('consumer', 'in', consumers)
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
  const states = await countStates(db);
  return {
    instances: { ...NO_INSTANCES, ...states.instances },
    lists: { ...NO_LISTS, ...states.lists },
    consumer_lag_seconds: Object.fromEntries(
      [...none, ...pending].map(({ consumer, since }) => [consumer, age(since)]),
    ),
    outbox_writes: { ...NO_WRITES, ...Object.fromEntries(writes.map(({ state, count }) => [state, count])) },
    outbox_lag_seconds: age(waiting.length === 0 ? null : Math.min(...waiting.map(({ since }) => since))),
    sync_held_deletions: held,
    handler_dead_letters: await countRows(
      db
        .selectFrom('dead_letters')
        .where('list', 'in', db.selectFrom('lists').select('id').where('instance_id', 'in', connected)),
    ),
    list_age_seconds: age(checkedAt),
    list_failing_seconds: age(failingSince),
    refresh_token_first_end_seconds:
      tokens.oldest === null
        ? undefined
        : (addMonths(tokens.oldest, REFRESH_TOKEN_LIFETIME_MONTHS) - serviceNow) / 1_000,
    refresh_tokens_overdue: tokens.overdue,
  };
}
