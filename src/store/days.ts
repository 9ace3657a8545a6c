import { type Kysely, sql, type Transaction } from 'kysely';
import type { Database } from './database.ts';
import type { DayTable, Schema } from './schema.ts';

/** Full runs of a list that are kept, and checks that found something. */
export const HISTORY = 50;

/** Days of which sums are kept. */
export const DAYS = 30;
const DAY_MS = 24 * 60 * 60_000;

/** The sums of a day without a run. */
export const NOTHING = { runs: 0, failed: 0, created: 0, changed: 0, deleted: 0, first_copy: 0 } as const;
const SUMS = Object.keys(NOTHING) as (keyof typeof NOTHING)[];

/** The sums of the last {@link DAYS} days of a list, by days since 1970 in UTC. The open run counts as of today. */
export async function readDays(db: Database, list: number, now: number): Promise<Map<number, DayTable>> {
  const first = dayOf(now) - DAYS + 1;
  // One statement: between two, a run could leave the history.
  const { rows } = await sql<DayTable>`
    select list, day, ${sql.join(SUMS.map(sql.ref))} from days where list = ${list} and day >= ${first}
    union all ${sumsOfRuns(now)} where list = ${list} and coalesce(finished_at, ${sql.lit(now)}) >= ${first * DAY_MS}
    group by list, ${dayOfRun(now)}`.execute(db);
  const days = new Map<number, DayTable>();
  for (const row of rows) {
    const day = Number(row.day);
    const known = days.get(day) ?? { list, day, ...NOTHING };
    const added = Object.fromEntries(SUMS.map((name) => [name, known[name] + Number(row[name])]));
    days.set(day, { list, day, ...NOTHING, ...added, failed: Math.max(known.failed, Number(row.failed)) });
  }
  return days;
}

/** Makes space for a run in the history of each list. Of older runs, the sums of their days stay. */
export async function removeOldRuns(
  tx: Transaction<Schema>,
  lists: readonly number[],
  kind: 'full' | 'check',
  now: number,
): Promise<void> {
  const numbered = tx
    .selectFrom('runs')
    .select('id')
    .select(sql<number>`row_number() over (partition by list order by id desc)`.as('place'))
    .where('list', 'in', [...lists])
    .where('kind', '=', kind);
  const old = tx.selectFrom(numbered.as('numbered')).select('id').where('place', '>=', HISTORY);
  const ids = (await old.execute()).map(({ id }) => id);
  if (ids.length === 0) return;
  const added = SUMS.map((name) => {
    const [old, more] = [sql.ref(`days.${name}`), sql.ref(`excluded.${name}`)];
    const isFlag = name === 'failed';
    return sql`${sql.ref(name)} = ${isFlag ? sql`case when ${old} > ${more} then ${old} else ${more} end` : sql`${old} + ${more}`}`;
  });
  await sql`insert into days (list, day, ${sql.join(SUMS.map(sql.ref))})
    ${sumsOfRuns(now)} where id in (${sql.join(ids)}) group by list, ${dayOfRun(now)}
    on conflict (list, day) do update set ${sql.join(added)}`.execute(tx);
  await tx.deleteFrom('runs').where('id', 'in', ids).execute();
  await tx
    .deleteFrom('days')
    .where('list', 'in', [...lists])
    .where('day', '<=', dayOf(now) - DAYS)
    .execute();
}

function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

function dayOfRun(now: number) {
  return sql`coalesce(finished_at, ${sql.lit(now)}) / ${sql.lit(DAY_MS)}`;
}

/** Selects the sums of runs, in the order of the columns of `days`. The caller says of which, and groups them. */
function sumsOfRuns(now: number) {
  return sql`select list, ${dayOfRun(now)} as day,
    sum(case when kind = 'full' and state = 'finished' then 1 else 0 end) as runs,
    max(case when state = 'failed' then 1 else 0 end) as failed,
    sum(case when is_first = 1 then 0 else created end) as created,
    sum(changed) as changed, sum(deleted) as deleted,
    sum(case when is_first = 1 then created else 0 end) as first_copy
    from runs`;
}

/** Notes that a list fails, or all lists of an instance: an open run that recovers would hide it. */
export async function noteFailure(
  tx: Kysely<Schema>,
  of: { id: number } | { instance_id: string },
  now: number,
): Promise<void> {
  const which = 'id' in of ? sql`id = ${of.id}` : sql`instance_id = ${of.instance_id} and removed_at is null`;
  await sql`insert into days (list, day, ${sql.join(SUMS.map(sql.ref))})
    select id, ${sql.lit(dayOf(now))}, 0, 1, 0, 0, 0, 0 from lists where ${which}
    on conflict (list, day) do update set failed = 1`.execute(tx);
}
