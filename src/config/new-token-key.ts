import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { TOKEN_KEYS_FILE, withDevelopmentSecrets } from './development-secrets.ts';
import { readVariables } from './read-variables.ts';
import { TOKEN_KEY_BYTES, type TokenKey } from './token-keys.ts';

/** Random bytes of a key's id, besides the date: two keys of a day are told apart. */
const ID_BYTES = 3;

/**
 * Makes a key that encrypts tokens at rest, and puts it in front of those that are in use: it encrypts from then on,
 * and they still decrypt.
 *
 * @param env holds TOKEN_KEYS, or else the keys in use are those of development, kept in `dataDir`, if there are any
 * @param now names the key, in milliseconds since 1970
 * @returns the value for TOKEN_KEYS, its first id, and the ids of the older keys
 * @throws ConfigError when the keys in use cannot be read
 */
export function withNewTokenKey(
  env: NodeJS.ProcessEnv,
  dataDir: string,
  now: number,
): { value: string; id: string; olderIds: string[] } {
  const older = keysInUse(env, dataDir);
  const day = new Date(now).toISOString().slice(0, 10);
  const fresh = {
    id: `${day}-${randomBytes(ID_BYTES).toString('hex')}`,
    key: randomBytes(TOKEN_KEY_BYTES),
  };
  const value = [fresh, ...older].map(({ id, key }) => `${id}:${key.toString('base64')}`).join(',');
  return { value, id: fresh.id, olderIds: older.map(({ id }) => id) };
}

function keysInUse(env: NodeJS.ProcessEnv, dataDir: string): TokenKey[] {
  const { TOKEN_KEYS, NODE_ENV } = env;
  const { given, problems } = readVariables({ TOKEN_KEYS, NODE_ENV });
  if (problems.length > 0) throw new ConfigError(problems.map(aboutKeysInUse));
  if (given.TOKEN_KEYS !== undefined) return given.TOKEN_KEYS;
  if (given.NODE_ENV === 'production' || !existsSync(join(dataDir, TOKEN_KEYS_FILE))) return [];
  return withDevelopmentSecrets(dataDir, { sessionSecret: '', tokenKeys: undefined }).tokenKeys;
}

/** Elsewhere an error about keys leads to the command that this is part of: here it would lead back to itself. */
function aboutKeysInUse(given: ConfigProblem): ConfigProblem {
  if (given.variable !== 'TOKEN_KEYS') return given;
  const problem = `${given.problem}. No key was made: put the keys in use right, or leave it empty if there are none yet`;
  return { ...given, problem, example: '<the keys in use, or nothing>' };
}
