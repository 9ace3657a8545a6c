import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Rows of one statement: SQLite takes so many parameters and no more. */
const CHUNK = 500;

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
  const instances = Array.from({ length: count }, (_, index) => {
    const id = instanceId(index);
    return { id, company_id: null, name: id, status: 'active' as const, notice: null, installed_at: 1 };
  });
  const rows = instances.map(({ id }, index) => ({
    instance_id: id,
    access_token: vault.seal(`at-${index}`, { instanceId: id, purpose: 'access_token' }),
    refresh_token: vault.seal(`rt-${index}`, { instanceId: id, purpose: 'refresh_token' }),
    access_expires_at: 1,
    refresh_issued_at: 1,
    refresh_due_at: 1,
    refreshed_at: 1,
    version: 1,
    rotations: 0,
    refreshes: 0,
  }));
  // All in one go: every write of its own would wait for the disk.
  await db.transaction().execute(async (transaction) => {
    for (let from = 0; from < count; from += CHUNK) {
      await transaction
        .insertInto('instances')
        .values(instances.slice(from, from + CHUNK))
        .execute();
      await transaction
        .insertInto('tokens')
        .values(rows.slice(from, from + CHUNK))
        .execute();
    }
  });
  return { dir, url, db, store };
}

/** The id of the nth instance, in the order of numbers. */
export function instanceId(index: number): string {
  return `ins_${String(index).padStart(5, '0')}`;
}
