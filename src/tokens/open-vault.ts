import type { Database } from '../store/database.ts';
import { type OpenOptions, openDatabase } from '../store/open-database.ts';
import { TokenStore } from '../store/tokens.ts';
import { type AwakeReason, takeBackEnds } from './ended-grants.ts';
import { checkKeys, proveKeys } from './key-checks.ts';
import type { Application } from './oauth-client.ts';
import { Vault, type VaultKey } from './vault.ts';

/**
 * Opens the database of a process that works with its tokens, and their vault. With a key that is not the right one
 * nothing is migrated either: the version before goes on.
 *
 * @param options.onSecret told of every text that goes in or comes out in clear
 * @param options.application that this process asks the service as
 * @param options.onAwake told of the instances whose grant was taken for over, and that are active again; and why
 * @throws WrongKeyError; and what {@link openDatabase} throws
 */
export async function openVault(
  databaseUrl: string,
  keys: readonly VaultKey[],
  options: OpenOptions & {
    application: Application;
    onSecret: (text: string) => void;
    onAwake: (instanceId: string, reason: AwakeReason) => void;
  },
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
    for (const { instanceId, reason } of await takeBackEnds({ store, vault }, options.application)) {
      options.onAwake(instanceId, reason);
    }
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return { db, vault };
}
