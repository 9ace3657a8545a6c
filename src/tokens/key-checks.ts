import type { SealedTokens, TokenStore } from '../store/tokens.ts';
import { sealedBatches } from './sealed-batches.ts';
import { type SealedFor, unknownKeyMessage, type Vault, VaultError } from './vault.ts';

/** A key of TOKEN_KEYS that is not the one its id stands for in this database: nothing is done with it. */
export class WrongKeyError extends Error {
  override readonly name = 'WrongKeyError';
}

/** What the key checks work with. */
interface KeyCheckParts {
  store: TokenStore;
  vault: Vault;
}

/**
 * Sees to it that every key is the one that its id stands for, before anything is done with it. A wrong key opens
 * nothing, just as if all tokens had been changed, and what it seals nobody else opens.
 *
 * The database keeps a check value for each id. Whoever uses an id first writes it, and the first one wins; where there
 * are tokens from before there were check values, only a key that opens one of them.
 *
 * @throws WrongKeyError, and nothing is written then, for no key
 */
export async function proveKeys({ store, vault }: KeyCheckParts): Promise<void> {
  for (const id of await checkKeys({ store, vault })) {
    compare(vault, id, await store.keepKeyCheck(id, vault.checkValue(id) ?? ''));
  }
}

/**
 * Looks whether a key is known to be another one than its id stands for. It only reads, also in a database that is still
 * to be migrated.
 *
 * @returns the ids that have no check value yet
 * @throws WrongKeyError
 */
export async function checkKeys({ store, vault }: KeyCheckParts): Promise<string[]> {
  const fresh: string[] = [];
  for (const id of vault.keyIds) {
    const known = await store.keyCheck(id);
    if (known !== undefined) compare(vault, id, known);
    else if ((await tryKey({ store, vault }, id)) === 'opens nothing')
      throw new WrongKeyError(opensNothing(id));
    else fresh.push(id);
  }
  return fresh;
}

function compare(vault: Vault, id: string, known: string): void {
  if (vault.checkValue(id) !== known) throw new WrongKeyError(isAnother(id));
}

/** Whether a key opens any of the tokens under its id. */
async function tryKey(
  { store, vault }: KeyCheckParts,
  id: string,
): Promise<'opens' | 'opens nothing' | 'unused'> {
  let result: 'opens nothing' | 'unused' = 'unused';
  for await (const rows of sealedBatches(store)) {
    for (const row of rows) {
      for (const purpose of ['access_token', 'refresh_token'] as const) {
        if (vault.keyIdOf(row[purpose]) !== id) continue;
        if (opens(vault, row, purpose)) return 'opens';
        result = 'opens nothing';
      }
    }
  }
  return result;
}

/** Whether a stored text is what was sealed for its instance, with a key that is here. */
export function opens(vault: Vault, row: SealedTokens, purpose: SealedFor['purpose']): boolean {
  try {
    vault.open(row[purpose], { instanceId: row.instance_id, purpose });
    return true;
  } catch (error) {
    if (error instanceof VaultError) return false;
    throw error;
  }
}

/**
 * To be asked before a grant is ended because its tokens do not open: with another database in the place of the one
 * that this process has begun with, its keys may be the wrong ones.
 *
 * @throws VaultError that does not take the text for lost, when the key that was tried is not known to be the right one
 */
export async function checkTriedKey({ store, vault }: KeyCheckParts, error: VaultError): Promise<void> {
  const id = error.triedKeyId;
  if (id === undefined || (await store.keyCheck(id)) === vault.checkValue(id)) return;
  throw new VaultError(
    `The stored tokens do not open with the key "${id}" in TOKEN_KEYS, which is not known to be the right one: whoever runs this app has to put the right key back, and restart it.`,
    { cause: error, isLost: false },
  );
}

/**
 * What is wrong with a text that does not open, as far as the database knows: under an id that no key has had here the
 * key may be missing, or the id is what was changed.
 */
export async function explainMissingKey(store: TokenStore, error: VaultError): Promise<VaultError> {
  const { missing } = error;
  if (missing === undefined || (await store.keyCheck(missing.keyId)) !== undefined) return error;
  return new VaultError(unknownKeyMessage(missing), { cause: error, isLost: false });
}

function isAnother(id: string): string {
  return (
    `TOKEN_KEYS holds another key under the id "${id}" than the one that it stands for in this database. ` +
    'Nothing was done with it. Put the right key back (in development it is kept in .data/token-keys); ' +
    `a new key needs an id of its own: npm run keys makes one. If the key "${id}" is lost, take it out of TOKEN_KEYS: ` +
    'companies whose tokens are under it have to authorize the app again.'
  );
}

function opensNothing(id: string): string {
  return (
    `The key "${id}" in TOKEN_KEYS opens none of the tokens in this database that were encrypted under that id. ` +
    'Nothing was done with it. Put the right key back (in development it is kept in .data/token-keys). ' +
    `If it is lost, take "${id}" out of TOKEN_KEYS, and make a new key with an id of its own: npm run keys. ` +
    'Companies whose tokens are under the lost key have to authorize the app again.'
  );
}
