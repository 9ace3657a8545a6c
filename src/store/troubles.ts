import { type Expression, type ExpressionBuilder, type Kysely, type SqlBool, sql } from 'kysely';
import { HANDLER_CONSUMER } from './changes.ts';
import type { Database } from './database.ts';
import { failedLists, OVERDUE_AFTER_MS } from './figures.ts';
import { isActive } from './lists.ts';
import { UNFINISHED } from './outbox.ts';
import type { Schema } from './schema.ts';

/** What may be wrong with an instance, the worst first. A person can help in each. */
export const TROUBLES = [
  'authorization',
  'token',
  'failing',
  'held',
  'dead_letters',
  'outbox',
  'lagging',
] as const;
export type Trouble = (typeof TROUBLES)[number];

/** One trouble of an instance, or of one list of it. Moments are milliseconds since 1970. */
export interface TroubleRow {
  kind: Trouble;
  instanceId: string;
  resource: string | null;
  /** Records, deletions or writes; null where there is nothing to count. */
  count: number | null;
  /** An error as it came, where there is one; redacted already. */
  detail: string | null;
  /** Null where nobody has noted it. */
  since: number | null;
}

/** What this version works with: nobody works on other lists, and without a handler nothing waits for it. */
export interface Work {
  resources: readonly string[];
  hasHandler: boolean;
}

/** A list that fails for less than this needs nobody's attention, in milliseconds. */
const SHORT_FAILURE_MS = 2 * 60_000;

/** So many failed refreshes in a row, with growing pauses, are more than a short outage. */
const MANY_FAILURES = 6;

/** A change or a write that waits longer lags, in milliseconds. */
const LAG_MS = 30 * 60_000;

/** The handler is in trouble once the tries of a record have failed so often. */
const MANY_TRIES = 2;

/** Each kind of trouble, as queries of the instances and lists that have it. Each is read once, not once an instance. */
function sourcesOf(db: Kysely<Schema>, { resources, hasHandler }: Work, now: number) {
  const connected = db.selectFrom('instances').select('instances.id').where('status', '!=', 'disconnected');
  const known = db
    .selectFrom('lists')
    .where('removed_at', 'is', null)
    .where('resource', 'in', ['', ...resources]);
  const lists = known.where('instance_id', 'in', connected);
  const noList = sql<null>`cast(null as text)`.as('resource');
  const noDetail = sql<null>`cast(null as text)`.as('detail');
  const noCount = sql<null>`cast(null as bigint)`.as('count');
  // Each page clears `failing_since`, even in a run that always fails at a later page.
  const firstFailed = sql<number | null>`(select min(started_at) from runs where runs.list = lists.id
    and kind = 'full' and state = 'failed' and runs.id > coalesce(lists.full_run, 0))`;
  const overdueFrom = now - OVERDUE_AFTER_MS;
  return {
    authorization: db
      .selectFrom('instances')
      .where('status', '=', 'needs_reauthorization')
      .select(['id as instance_id', noList, noCount, noDetail, 'status_since as since']),
    token: db
      .selectFrom('tokens')
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .where('instances.status', 'in', ['active', 'paused'])
      .where((eb) =>
        eb.or([
          eb('refresh_failures', '>=', MANY_FAILURES),
          // As the metric has it, which raises an alarm.
          eb.and([eb('refresh_due_at', '<=', overdueFrom), eb('refreshed_at', '<=', overdueFrom)]),
        ]),
      )
      .select(['instance_id', noList, 'refresh_failures as count', noDetail, 'refreshed_at as since']),
    failing: known
      .where(isActive)
      .where((eb) =>
        eb.or([eb('failing_since', '<=', now - SHORT_FAILURE_MS), eb('id', 'in', failedLists(db))]),
      )
      .select([
        'instance_id',
        'resource',
        noCount,
        noDetail,
        sql<number | null>`coalesce(${firstFailed}, failing_since)`.as('since'),
      ]),
    held: lists
      .where('held', '>', 0)
      .select(['instance_id', 'resource', 'held as count', noDetail, 'held_since as since']),
    dead_letters: lists
      .innerJoin('dead_letters', 'dead_letters.list', 'lists.id')
      .groupBy(['instance_id', 'resource'])
      .select(({ fn }) => [
        'instance_id',
        'resource',
        fn.countAll<number>().as('count'),
        fn.max('dead_letters.error_detail').as('detail'),
        fn.min('at').as('since'),
      ]),
    outbox: db
      .selectFrom('outbox')
      .where('instance_id', 'in', connected)
      .where((eb) => eb.or([eb('state', 'in', ['refused', 'unknown']), eb('created_at', '<=', now - LAG_MS)]))
      .where(UNFINISHED)
      .groupBy('instance_id')
      .select(({ fn }) => [
        'instance_id',
        noList,
        fn.countAll<number>().as('count'),
        fn.max('error').as('detail'),
        fn.min('created_at').as('since'),
      ]),
    lagging: known
      .where(isActive)
      .leftJoin('consumers', (join) =>
        join.onRef('consumers.list', '=', 'lists.id').on('consumers.consumer', '=', HANDLER_CONSUMER),
      )
      .where(sql<SqlBool>`lists.change_seq > coalesce(consumers.cursor, 0)`)
      .where((eb) =>
        eb.or([
          eb('consumers.attempts', '>=', MANY_TRIES),
          // A change's number is the clock in microseconds when it was made.
          sql<SqlBool>`${OLDEST_PENDING} < ${now - LAG_MS}`,
        ]),
      )
      .$if(!hasHandler, (query) => query.where(sql<SqlBool>`1 = 0`))
      .select([
        'instance_id',
        'resource',
        noCount,
        'consumers.error_detail as detail',
        OLDEST_PENDING.as('since'),
      ]),
  };
}

const OLDEST_PENDING = sql<number>`(select min(change_seq) / 1000 from records
  where records.list = lists.id and records.change_seq > coalesce(consumers.cursor, 0))`;

/** Which instances have a trouble, by its kind. */
export function troublesOf(
  db: Kysely<Schema>,
  eb: ExpressionBuilder<Schema, 'instances'>,
  work: Work,
  now = Date.now(),
): Record<Trouble, Expression<SqlBool>> {
  const entries = Object.entries(sourcesOf(db, work, now)).map(([kind, source]) => {
    const ids = db.selectFrom(sql<{ instance_id: string }>`(${source})`.as('found')).select('instance_id');
    return [kind, eb('instances.id', 'in', ids)];
  });
  return Object.fromEntries(entries);
}

/** The troubles of one instance, or of all: the worst first, and the oldest of a kind. */
export async function readTroubles(
  db: Database,
  work: Work,
  instanceId?: string,
  now = Date.now(),
): Promise<TroubleRow[]> {
  const whose = instanceId === undefined ? sql`` : sql`where instance_id = ${instanceId}`;
  const rows = Object.entries(sourcesOf(db, work, now)).map(([kind, source]) => {
    return sql`select ${sql.lit(kind)} as kind, instance_id, resource, count, detail, since
      from (${source}) as found ${whose}`;
  });
  const { rows: found } = await sql<{
    kind: Trouble;
    instance_id: string;
    resource: string | null;
    count: number | null;
    detail: string | null;
    since: number | null;
  }>`${sql.join(rows, sql` union all `)}`.execute(db);
  return found
    .map(({ kind, instance_id, resource, count, detail, since }) => {
      const number = count === null ? null : Number(count);
      return { kind, instanceId: instance_id, resource, count: number, detail, since: Number(since) || null };
    })
    .toSorted(
      (a, b) => TROUBLES.indexOf(a.kind) - TROUBLES.indexOf(b.kind) || (a.since ?? 0) - (b.since ?? 0),
    );
}
