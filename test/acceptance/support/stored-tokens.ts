import Sqlite from 'better-sqlite3';
import type { World } from './world.ts';

/** An instance's row of the table `tokens`; the tokens in it are encrypted. */
export type TokenRow = Record<string, unknown> & { access_token: string; refresh_token: string };

/** Reads the row of an instance. */
export function tokenRow(world: World, id: string): TokenRow {
  return withDatabase(world, (db) => {
    return db.prepare('select * from tokens where instance_id = ?').get(id) as TokenRow;
  });
}

/** Puts a row that was read before in the place of the one that is there, as a process of the app may. */
export function putTokenRow(world: World, row: TokenRow): void {
  const columns = Object.keys(row).map((name) => `${name} = @${name}`);
  withDatabase(world, (db) => {
    db.prepare(`update tokens set ${columns.join(', ')} where instance_id = @instance_id`).run(row);
  });
}

/** The tokens of an instance as the database holds them, encrypted. */
export function storedTokens(world: World, id: string): Pick<TokenRow, 'access_token' | 'refresh_token'> {
  const { access_token, refresh_token } = tokenRow(world, id);
  return { access_token, refresh_token };
}

function withDatabase<Result>(world: World, work: (db: Sqlite.Database) => Result): Result {
  const db = new Sqlite(`${world.dir}/app.db`, { timeout: 5_000 });
  try {
    return work(db);
  } finally {
    db.close();
  }
}
