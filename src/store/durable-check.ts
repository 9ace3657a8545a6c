import { sql } from 'kysely';
import type { Database } from './database.ts';

/**
 * Tries whether what is written by {@link Database.durably} would be on the disk. A disk may take every write, and fail
 * where it is made to keep it: {@link Database.check} alone, which is done every few seconds, asks it for no such thing.
 *
 * @throws NewerSchemaError when the schema is a newer version's
 * @throws Error that says what is wrong and what to do, for whoever is on call
 */
export async function checkDurably(db: Database): Promise<void> {
  const version = await db.atOnce(() => db.prepare<[], number>('pragma user_version').pluck().get());
  // Gives up sooner where another process keeps the database locked.
  await db.check();
  await db.durably((transaction) => sql.raw(`pragma user_version = ${Number(version)}`).execute(transaction));
}
