import type { TokenStore } from '../store/tokens.ts';
import { proveKeys, takeBackEnds } from './key-checks.ts';
import { Vault, type VaultKey } from './vault.ts';

/**
 * The vault of a process that works with the tokens of a database.
 *
 * @param options.onSecret told of every text that goes in or comes out in clear
 * @param options.onAwake told of the instances that need no new authorization any more, as their tokens open again
 * @throws WrongKeyError
 */
export async function openVault(
  store: TokenStore,
  keys: readonly VaultKey[],
  options: { onSecret: (text: string) => void; onAwake: (instanceId: string) => void },
): Promise<Vault> {
  const vault = new Vault(keys, options.onSecret);
  await proveKeys({ store, vault });
  for (const instanceId of await takeBackEnds({ store, vault })) options.onAwake(instanceId);
  return vault;
}
