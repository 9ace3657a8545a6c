import { sql } from 'kysely';
import type { Database } from './database.ts';
import type { Run, RunClaim } from './runs.ts';

/** A page as it came from the service. */
export interface PageText {
  /** The answer's body: JSON whose `_results` member holds the records. */
  body: string;
  /** The address of the next page, or null when this was the last one. */
  next: string | null;
}

/** Places of a page's records in `_results` that are new to the copy, or differ from it. */
export interface PageChanges {
  created: number[];
  changed: number[];
  /** How many have no usable id. */
  skipped: number;
}

// A usable id is a non-empty string or an integer; the store keeps it as text, an integer by its digits, which may
// be more than a number has room for. Documents go in by json_each as the text that came, so that large integers,
// `1.0`, escapes and the order of names survive.
const ITEMS = (body: string) => sql`
  select cast(key as integer) as place, value as document,
    case json_type(value, '$.id') when 'text' then value ->> '$.id' else value -> '$.id' end as id
  from json_each(${body}, '$._results')
  where type = 'object' and json_type(value, '$.id') in ('text', 'integer') and json_extract(value, '$.id') <> ''`;

/** Writing pages of records, under the run that read them. */
export class PageStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Compares a page with the copy, without writing.
   *
   * @param count how many records the page holds
   */
  async compare(run: Run, page: PageText, count: number): Promise<PageChanges> {
    const { rows } = await sql<{ place: number; known: string | null; same: number }>`
      select item.place, record.id as known, record.document = item.document as same
      from (${ITEMS(page.body)}) as item
      left join records as record
        on record.instance_id = ${run.instance_id} and record.resource = ${run.resource}
        and record.id = item.id and record.deleted_at is null
      order by item.place`.execute(this.#db);
    return {
      created: rows.filter((row) => row.known === null).map((row) => row.place),
      changed: rows.filter((row) => row.known !== null && !row.same).map((row) => row.place),
      skipped: count - rows.length,
    };
  }

  /**
   * Writes a page's records and moves the cursor, in one transaction, if the claim is still the newest and the
   * instance is still active.
   *
   * @param now milliseconds since 1970
   * @returns the run as it is now; undefined when somebody else has taken it over, or the instance was paused or
   *   disconnected: nothing was written then
   */
  async commit(claim: RunClaim, page: PageText, counts: { records: number; skipped: number }, now: number) {
    return this.#db.transaction().execute(async (transaction) => {
      const run = await transaction
        .updateTable('runs')
        .set((old) => ({
          cursor: page.next,
          phase: page.next === null ? ('deletions' as const) : ('pages' as const),
          pages: old('pages', '+', 1),
          records: old('records', '+', counts.records),
          skipped: old('skipped', '+', counts.skipped),
          attempt: 0,
          error: null,
        }))
        .where('instance_id', '=', claim.instanceId)
        .where('resource', '=', claim.resource)
        .where('fence', '=', claim.fence)
        .where((where) => where.exists(activeInstance(claim.instanceId)))
        .returningAll()
        .executeTakeFirst();
      if (run === undefined) return undefined;
      await sql`
        insert into records (instance_id, resource, id, document, generation, updated_at)
        select ${run.instance_id}, ${run.resource}, item.id, item.document, ${run.generation}, ${now}
        from (${ITEMS(page.body)}) as item where true
        on conflict (instance_id, resource, id) do update set
          generation = excluded.generation,
          document = excluded.document,
          updated_at = case
            when records.document = excluded.document and records.deleted_at is null then records.updated_at
            else excluded.updated_at end,
          deleted_at = null`.execute(transaction);
      return run;
    });
  }
}

/** A subquery that yields a row while the instance is active. */
export function activeInstance(instanceId: string) {
  return sql<{ id: string }>`(select id from instances where id = ${instanceId} and status = 'active')`;
}
