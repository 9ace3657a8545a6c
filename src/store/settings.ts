import type { Database } from './database.ts';

/** Keeps a fact about the whole database, unless there is one of this name. @returns the value that stands */
export function keepSetting(db: Database, name: string, value: string): Promise<string> {
  return db.durably(async (tx) => {
    const fresh = tx.insertInto('settings').values({ name, value });
    await fresh.onConflict((conflict) => conflict.doNothing()).execute();
    const kept = tx.selectFrom('settings').select('value').where('name', '=', name);
    return (await kept.executeTakeFirstOrThrow()).value;
  });
}
