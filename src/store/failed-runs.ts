import { sql } from 'kysely';
import type { Database } from './database.ts';
import type { RunKey } from './runs.ts';

/**
 * Runs of active instances that failed with one of these errors, or with one that begins so.
 *
 * @param isMeant looks at the error more closely
 */
export async function failedWith(
  db: Database,
  beginnings: readonly string[],
  isMeant: (error: string) => boolean = () => true,
): Promise<RunKey[]> {
  const rows = await db
    .selectFrom('runs')
    .innerJoin('instances', 'instances.id', 'runs.instance_id')
    .select(['runs.instance_id', 'runs.resource', 'runs.error'])
    .where('runs.state', '=', 'failed')
    .where(({ or, eb }) =>
      or(beginnings.map((text) => eb(sql`substr(runs.error, 1, ${text.length})`, '=', text))),
    )
    .where('instances.status', '=', 'active')
    .execute();
  const meant = rows.filter(({ error }) => error !== null && isMeant(error));
  return meant.map((row) => ({ instanceId: row.instance_id, resource: row.resource }));
}
