import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeOnce } from '../runtime/write-once.ts';
import { ConfigError, readVariables, type TokenKey } from './variables.ts';

/** Random ids, so that a database from another machine finds no wrong key. */
const newKey = (name: string) =>
  `${name}-${randomBytes(3).toString('hex')}:${randomBytes(32).toString('base64')}`;

/**
 * The session secret of development: made at the first start, and kept in `dataDir`.
 *
 * @throws ConfigError if the app cannot read or write the file, or if it holds something else
 */
export const keptSessionSecret = (dataDir: string): string =>
  kept(dataDir, 'session-secret', 'SESSION_SECRET', () => randomBytes(48).toString('base64url'));

/** The token keys of development, as {@link keptSessionSecret}. */
export const keptTokenKeys = (dataDir: string): TokenKey[] =>
  kept(dataDir, 'token-keys', 'TOKEN_KEYS', () => newKey('dev'));

function kept<Name extends 'SESSION_SECRET' | 'TOKEN_KEYS'>(
  dataDir: string,
  file: string,
  name: Name,
  generate: () => string,
) {
  const path = join(dataDir, file);
  let reason = 'the file holds something else';
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    if (!existsSync(path)) writeOnce(path, `${generate()}\n`);
    const value = readVariables({ [name]: readFileSync(path, 'utf8').trim() }, [name]).given[name];
    if (value !== undefined) return value;
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error);
  }
  const problem = `is not set, and the app cannot keep one in ${path} (${reason}): restore or delete the file, or set the variable`;
  throw new ConfigError([{ variable: name, problem, example: '<a value of your own>' }]);
}

/**
 * Makes a key that encrypts tokens at rest, and puts it in front of the keys of TOKEN_KEYS, which still decrypt.
 * Development's own keys are not among them: production must not know keys that lie in a working directory.
 *
 * @param now names the key, in milliseconds since 1970
 * @returns the value for TOKEN_KEYS, its first id, and the ids of the older keys
 * @throws ConfigError if the keys in use cannot be read
 */
export function withNewTokenKey(
  env: NodeJS.ProcessEnv,
  now: number,
): { value: string; id: string; olderIds: string[] } {
  const { given, problems } = readVariables(env, ['TOKEN_KEYS']);
  if (problems.length > 0) {
    // The usual example names this command: that would lead in a circle.
    throw new ConfigError(problems.map((one) => ({ ...one, example: '<the keys in use, or nothing>' })));
  }
  const { TOKEN_KEYS: older = [] } = given;
  const fresh = newKey(new Date(now).toISOString().slice(0, 10));
  const value = [fresh, ...older.map(({ id, key }) => `${id}:${key.toString('base64')}`)].join(',');
  return { value, id: fresh.replace(/:.*/, ''), olderIds: older.map(({ id }) => id) };
}
