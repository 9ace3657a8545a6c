import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigError, readVariables, type TokenKey } from './variables.ts';

const TOKEN_KEYS_FILE = 'token-keys';

/** Two ids never meet: a database of another machine, or two keys of one day, would find the wrong key. */
const newKey = (name: string) =>
  `${name}-${randomBytes(3).toString('hex')}:${randomBytes(32).toString('base64')}`;

/**
 * The secrets that development makes for itself at its first start and keeps in `dataDir`.
 *
 * @throws ConfigError when a file cannot be read or written, or holds something else
 */
export const keptSessionSecret = (dataDir: string): string =>
  kept(join(dataDir, 'session-secret'), 'SESSION_SECRET', () => randomBytes(48).toString('base64url'));

/** As {@link keptSessionSecret}. */
export const keptTokenKeys = (dataDir: string): TokenKey[] =>
  kept(join(dataDir, TOKEN_KEYS_FILE), 'TOKEN_KEYS', () => newKey('dev'));

function kept<Name extends 'SESSION_SECRET' | 'TOKEN_KEYS'>(
  path: string,
  name: Name,
  generate: () => string,
) {
  const fail = (reason: string) => {
    const problem = `is not set, and cannot be kept in ${path}: ${reason}`;
    return new ConfigError([{ variable: name, problem, example: '<a value of your own>' }]);
  };
  try {
    if (!existsSync(path)) keep(path, generate());
    const value = readVariables({ [name]: readFileSync(path, 'utf8').trim() }, [name]).given[name];
    if (value !== undefined) return value;
  } catch (error) {
    throw fail(error instanceof Error ? error.message : String(error));
  }
  throw fail('the file holds something else: restore it, or delete it');
}

/** Processes that start at once agree on one: the file appears complete, and a link never replaces another's. */
function keep(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(temporary, `${text}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(temporary, path);
  } catch (error) {
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(temporary);
  }
}

/**
 * Makes a key that encrypts tokens at rest, and puts it in front of those that are in use: it encrypts from then on,
 * and they still decrypt.
 *
 * @param env holds TOKEN_KEYS; without it, the keys in use are the ones that development keeps in `dataDir`, if any
 * @param now names the key, in milliseconds since 1970
 * @returns the value for TOKEN_KEYS, its first id, and the ids of the older keys
 * @throws ConfigError when the keys in use cannot be read
 */
export function withNewTokenKey(
  env: NodeJS.ProcessEnv,
  dataDir: string,
  now: number,
): { value: string; id: string; olderIds: string[] } {
  const { given, problems } = readVariables(env, ['TOKEN_KEYS', 'NODE_ENV']);
  if (problems.length > 0) {
    // The example of these problems is this command: that would lead in a circle.
    throw new ConfigError(problems.map((one) => ({ ...one, example: '<the keys in use, or nothing>' })));
  }
  const isKept = given.NODE_ENV !== 'production' && existsSync(join(dataDir, TOKEN_KEYS_FILE));
  const older = given.TOKEN_KEYS ?? (isKept ? keptTokenKeys(dataDir) : []);
  const fresh = newKey(new Date(now).toISOString().slice(0, 10));
  const value = [fresh, ...older.map(({ id, key }) => `${id}:${key.toString('base64')}`)].join(',');
  return { value, id: fresh.replace(/:.*/, ''), olderIds: older.map(({ id }) => id) };
}
