import { type Database, type OpenOptions, openDatabase } from '../store/database.ts';
import { TokenStore } from '../store/tokens.ts';
import { checkKeys, proveKeys, takeBackEnds } from './key-checks.ts';
import { Vault, type VaultKey } from './vault.ts';

/**
 * Opens the database of a process that works with its tokens, and their vault. With a key that is not the right one
 * nothing is migrated either: the version before goes on.
 *
 * @param options.onSecret told of every text that goes in or comes out in clear
 * @param options.onAwake told of the instances that need no new authorization any more, as their tokens open again
 * @throws WrongKeyError; and what {@link openDatabase} throws
 */
export async function openVault(
  databaseUrl: string,
  keys: readonly VaultKey[],
  options: OpenOptions & { onSecret: (text: string) => void; onAwake: (instanceId: string) => void },
): Promise<{ db: Database; vault: Vault }> {
  const vault = new Vault(keys, options.onSecret);
  const db = await openDatabase(databaseUrl, {
    ...options,
    beforeMigration: async (old) => {
      await checkKeys({ store: new TokenStore(old), vault });
      await options.beforeMigration?.(old);
    },
  });
  try {
    const store = new TokenStore(db);
    await proveKeys({ store, vault });
    for (const instanceId of await takeBackEnds({ store, vault })) options.onAwake(instanceId);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return { db, vault };
}
