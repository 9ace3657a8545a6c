import type { Database } from './database.ts';

/**
 * Keeps a fact about the whole database, if there is none of this name yet.
 *
 * @returns the value that stands
 */
export function keepSetting(db: Database, name: string, value: string): Promise<string> {
  return db.durably(async (transaction) => {
    await transaction
      .insertInto('settings')
      .values({ name, value })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const kept = await transaction
      .selectFrom('settings')
      .select('value')
      .where('name', '=', name)
      .executeTakeFirstOrThrow();
    return kept.value;
  });
}
