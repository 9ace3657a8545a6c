import { query } from './database.ts';
import type { World } from './world.ts';

/** An instance's row of the table `tokens`; the tokens in it are encrypted. */
export type TokenRow = Record<string, string | number | null> & {
  access_token: string;
  refresh_token: string;
};

/** Reads the row of an instance. */
export async function tokenRow(world: World, id: string): Promise<TokenRow> {
  const [row] = await query<TokenRow>(world.databaseUrl, 'select * from tokens where instance_id = $1', [id]);
  if (row === undefined) throw new Error(`there are no tokens of ${id}`);
  return row;
}

/** Puts a row that was read before in the place of the one that is there, as a process of the app may. */
export async function putTokenRow(world: World, row: TokenRow): Promise<void> {
  const names = Object.keys(row).map((name, at) => `${name} = $${at + 1}`);
  const where = `where instance_id = $${names.length + 1}`;
  await query(world.databaseUrl, `update tokens set ${names.join(', ')} ${where}`, [
    ...Object.values(row),
    row.instance_id ?? null,
  ]);
}

/** As if the lease of a refresh had run out, which takes half a minute. */
export async function endLease(world: World, id: string): Promise<void> {
  const sql = 'update tokens set lease_until = 1 where instance_id = $1 and lease_until is not null';
  await query(world.databaseUrl, sql, [id]);
}

/** The tokens of an instance as the database holds them, encrypted. */
export async function storedTokens(
  world: World,
  id: string,
): Promise<Pick<TokenRow, 'access_token' | 'refresh_token'>> {
  const { access_token, refresh_token } = await tokenRow(world, id);
  return { access_token, refresh_token };
}
