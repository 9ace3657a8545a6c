import { type Expression, type ExpressionBuilder, type Kysely, type SqlBool, sql } from 'kysely';
import type { Database } from './database.ts';
import { failedLists } from './figures.ts';
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

/** A list that fails for less than this needs nobody's attention, in milliseconds. */
const SHORT_FAILURE_MS = 2 * 60_000;

/** So many failed refreshes in a row are no accident. */
const MANY_FAILURES = 3;

/** A change that waits longer for the handler lags, in milliseconds. */
const LAG_MS = 30 * 60_000;

const HANDLER = 'handler';

/** Each kind of trouble, as queries of the instances and lists that have it. Each is read once, not once an instance. */
function sourcesOf(db: Kysely<Schema>, now: number) {
  const lists = db.selectFrom('lists').where('removed_at', 'is', null);
  const isConnected = (eb: ExpressionBuilder<Schema, 'lists'>) =>
    eb(
      'instance_id',
      'in',
      eb.selectFrom('instances').select('instances.id').where('status', '!=', 'disconnected'),
    );
  const noList = sql<null>`cast(null as text)`.as('resource');
  const noDetail = sql<null>`cast(null as text)`.as('detail');
  const noCount = sql<null>`cast(null as bigint)`.as('count');
  return {
    authorization: db
      .selectFrom('instances')
      .where('status', '=', 'needs_reauthorization')
      .select(['id as instance_id', noList, noCount, noDetail, 'status_since as since']),
    token: db
      .selectFrom('tokens')
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .where('instances.status', 'in', ['active', 'paused'])
      .where('refresh_failures', '>=', MANY_FAILURES)
      .select(['instance_id', noList, 'refresh_failures as count', noDetail, 'refreshed_at as since']),
    failing: lists
      .where(isConnected)
      .where((eb) =>
        eb.or([eb('failing_since', '<=', now - SHORT_FAILURE_MS), eb('id', 'in', failedLists(db))]),
      )
      .select(['instance_id', 'resource', noCount, noDetail, 'failing_since as since']),
    held: lists
      .where(isConnected)
      .where('held', '>', 0)
      .select(['instance_id', 'resource', 'held as count', noDetail, 'held_since as since']),
    dead_letters: lists
      .innerJoin('dead_letters', 'dead_letters.list', 'lists.id')
      .where(isConnected)
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
      .innerJoin('instances', 'instances.id', 'outbox.instance_id')
      .where('instances.status', '!=', 'disconnected')
      .where('state', 'in', ['refused', 'unknown'])
      .where(UNFINISHED)
      .groupBy('instance_id')
      .select(({ fn }) => [
        'instance_id',
        noList,
        fn.countAll<number>().as('count'),
        fn.max('error').as('detail'),
        fn.min('created_at').as('since'),
      ]),
    lagging: lists
      .innerJoin('consumers', 'consumers.list', 'lists.id')
      .where('consumer', '=', HANDLER)
      .whereRef('lists.change_seq', '>', 'consumers.cursor')
      .where('instance_id', 'in', db.selectFrom('instances').select('id').where('status', '=', 'active'))
      // A change's number is the clock in microseconds when it was made.
      .where(sql<SqlBool>`${OLDEST_PENDING} < ${now - LAG_MS}`)
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
  where records.list = lists.id and records.change_seq > consumers.cursor)`;

/** Which instances have a trouble, by its kind. */
export function troublesOf(
  db: Kysely<Schema>,
  eb: ExpressionBuilder<Schema, 'instances'>,
  now = Date.now(),
): Record<Trouble, Expression<SqlBool>> {
  const entries = Object.entries(sourcesOf(db, now)).map(([kind, source]) => {
    const ids = db.selectFrom(sql<{ instance_id: string }>`(${source})`.as('found')).select('instance_id');
    return [kind, eb('instances.id', 'in', ids)];
  });
  return Object.fromEntries(entries);
}

/** Counts the instances that have each trouble. */
export async function countTroubles(db: Database, now = Date.now()): Promise<Record<Trouble, number>> {
  const rows = Object.entries(sourcesOf(db, now)).map(
    ([kind, source]) => sql<{ kind: Trouble; count: number }>`select ${sql.lit(kind)} as kind,
      count(distinct instance_id) as count from (${source}) as found`,
  );
  const { rows: counts } = await sql<{
    kind: Trouble;
    count: number;
  }>`${sql.join(rows, sql` union all `)}`.execute(db);
  return Object.fromEntries(counts.map(({ kind, count }) => [kind, Number(count)])) as Record<
    Trouble,
    number
  >;
}

/** The troubles of some instances, the worst first, and the oldest of a kind. */
export async function readTroubles(
  db: Database,
  instanceIds: readonly string[],
  now = Date.now(),
): Promise<TroubleRow[]> {
  if (instanceIds.length === 0) return [];
  const rows = Object.entries(sourcesOf(db, now)).map(([kind, source]) => {
    return sql`select ${sql.lit(kind)} as kind, instance_id, resource, count, detail, since from (${source}) as found
      where instance_id in (${sql.join(instanceIds)})`;
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
