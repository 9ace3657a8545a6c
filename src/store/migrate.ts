import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import * as initial from './migrations/0001-initial.ts';
import * as hashes from './migrations/0002-hashes.ts';
import * as search from './migrations/0003-search.ts';
import * as lists from './migrations/0004-lists.ts';
import type { Schema } from './schema.ts';

/** Every migration in its order; the names are kept in the database, so they never change. Forward only. */
const MIGRATIONS: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-hashes': hashes,
  '0003-search': search,
  '0004-lists': lists,
};

/**
 * Brings the database to the newest schema, once, however many processes start at the same time:
 * the write lock is taken first, and whoever comes second finds the work done.
 *
 * @throws when a migration fails; the database is then as it was before
 */
export async function migrate(db: Kysely<Schema>): Promise<void> {
  await db.connection().execute(async (connection) => {
    await sql`begin immediate`.execute(connection);
    try {
      const migrator = new Migrator({
        db: connection,
        provider: { getMigrations: async () => MIGRATIONS },
      });
      const { error } = await migrator.migrateToLatest();
      if (error !== undefined) throw error;
      await sql`commit`.execute(connection);
    } catch (error) {
      await sql`rollback`.execute(connection);
      throw error;
    }
  });
}
