import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A key, as the configuration and the vault take it. */
export function newKey(id: string): { id: string; key: Buffer } {
  return { id, key: randomBytes(32) };
}

/** The value of TOKEN_KEYS for these keys. */
export function tokenKeysValue(keys: { id: string; key: Buffer }[]): string {
  return keys.map(({ id, key }) => `${id}:${key.toString('base64')}`).join(',');
}

/** A database file of its own, with instances whose tokens are `at-<number>` and `rt-<number>` under a key. */
export async function openEncrypted(count: number, key: { id: string; key: Buffer }) {
  const dir = tempDir();
  const url = `file:${dir}/app.db`;
  const db = await openDatabase(url);
  afterAll(() => db.destroy());
  const store = new TokenStore(db);
  const vault = new Vault([key]);
  for (let index = 0; index < count; index++) {
    const id = instanceId(index);
    await store.install(
      { id, company_id: null, name: id, installed_at: 1 },
      {
        access_token: vault.seal(`at-${index}`, { instanceId: id, purpose: 'access_token' }),
        refresh_token: vault.seal(`rt-${index}`, { instanceId: id, purpose: 'refresh_token' }),
        access_expires_at: 1,
        refresh_issued_at: 1,
        refresh_due_at: 1,
        refreshed_at: 1,
      },
    );
  }
  return { dir, url, db, store };
}

/** The id of the nth instance, in the order of numbers. */
export function instanceId(index: number): string {
  return `ins_${String(index).padStart(5, '0')}`;
}

/** Opens the tokens of every instance: `[access token, refresh token]`, in the order of the ids. */
export async function openAll(store: TokenStore, vault: Vault): Promise<[string, string][]> {
  const rows = await store.listSealed('', 100_000);
  return rows.map((row) => [
    vault.open(row.access_token, { instanceId: row.instance_id, purpose: 'access_token' }),
    vault.open(row.refresh_token, { instanceId: row.instance_id, purpose: 'refresh_token' }),
  ]);
}
