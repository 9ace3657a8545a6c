import type { Database } from './database.ts';
import type { RunKey } from './runs.ts';

/** Runs of active instances that failed with one of these errors, to the letter. */
export async function failedWith(db: Database, errors: readonly string[]): Promise<RunKey[]> {
  const rows = await db
    .selectFrom('runs')
    .innerJoin('instances', 'instances.id', 'runs.instance_id')
    .select(['runs.instance_id', 'runs.resource'])
    .where('runs.state', '=', 'failed')
    .where('runs.error', 'in', errors)
    .where('instances.status', '=', 'active')
    .execute();
  return rows.map((row) => ({ instanceId: row.instance_id, resource: row.resource }));
}
