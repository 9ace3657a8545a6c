import Sqlite from 'better-sqlite3';
import type { World } from './world.ts';

/** The tokens of an instance as the database holds them, encrypted. */
export function storedTokens(world: World, id: string): { access_token: string; refresh_token: string } {
  const db = new Sqlite(`${world.dir}/app.db`, { readonly: true });
  try {
    const query = db.prepare('select access_token, refresh_token from tokens where instance_id = ?');
    return query.get(id) as { access_token: string; refresh_token: string };
  } finally {
    db.close();
  }
}
