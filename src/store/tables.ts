import { type Kysely, sql } from 'kysely';
import type { Schema } from './schema.ts';

/** Whether a database has a table: one that is still to be migrated lacks some. */
export async function hasTable(db: Kysely<Schema>, name: string): Promise<boolean> {
  const { rows } = await sql`
    select name from sqlite_master where type = 'table' and name = ${name}`.execute(db);
  return rows.length > 0;
}
