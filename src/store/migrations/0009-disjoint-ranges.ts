import { type Kysely, sql } from 'kysely';

/** Of runs under way: what overlaps or touches becomes one range, as it is written from now on. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create temp table disjoint as
    with reaching as (
      select list, first, last, max(last) over (
        partition by list order by first rows between unbounded preceding and 1 preceding) as behind
      from seen_ranges),
    numbered as (
      select list, first, last, sum(behind is null or first > behind + 1) over (
        partition by list order by first) as number
      from reaching)
    select list, min(first) as first, max(last) as last from numbered group by list, number`.execute(db);
  await sql`delete from seen_ranges`.execute(db);
  await sql`insert into seen_ranges (list, first, last) select list, first, last from disjoint`.execute(db);
  await sql`drop table disjoint`.execute(db);
}
