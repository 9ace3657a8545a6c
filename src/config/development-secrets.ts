import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { z } from 'zod';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { keptSecret } from './kept-secret.ts';
import { TOKEN_KEY_BYTES, type TokenKey } from './token-keys.ts';
import { VARIABLES } from './variables.ts';

const SESSION_SECRET_BYTES = 48;
const KEY_ID_BYTES = 3;

/** Name of the file that keeps the keys of development. */
export const TOKEN_KEYS_FILE = 'token-keys';

/** The two secrets that development makes for itself. */
export interface Secrets {
  sessionSecret: string;
  tokenKeys: TokenKey[];
}

/**
 * Fills in the secrets that were not given, from files in `dataDir` that are written on the first start.
 *
 * @throws ConfigError when a file cannot be read or written, or holds something else
 */
export function withDevelopmentSecrets(
  dataDir: string,
  given: { [Name in keyof Secrets]: Secrets[Name] | undefined },
): Secrets {
  const problems: ConfigProblem[] = [];
  const keep = <Value>(
    variable: string,
    { schema, example }: { schema: z.ZodType<Value>; example: string },
    fileName: string,
    generate: () => string,
  ): Value | undefined => {
    const path = join(dataDir, fileName);
    try {
      const result = schema.safeParse(keptSecret(dataDir, fileName, generate));
      if (result.success) return result.data;
      const problem = `was kept in ${path}, which holds something else now: restore it, delete it, or set the variable`;
      problems.push({ variable, problem, example });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      problems.push({ variable, problem: `is not set, and cannot be kept in ${path}: ${reason}`, example });
    }
    return undefined;
  };

  const sessionSecret =
    given.sessionSecret ??
    keep('SESSION_SECRET', VARIABLES.SESSION_SECRET, 'session-secret', () =>
      randomBytes(SESSION_SECRET_BYTES).toString('base64url'),
    );
  const tokenKeys =
    given.tokenKeys ??
    keep(
      'TOKEN_KEYS',
      VARIABLES.TOKEN_KEYS,
      TOKEN_KEYS_FILE,
      // Each has an id of its own, or a database that comes from another machine would find the wrong key under the right id.
      () =>
        `dev-${randomBytes(KEY_ID_BYTES).toString('hex')}:${randomBytes(TOKEN_KEY_BYTES).toString('base64')}`,
    );
  if (sessionSecret === undefined || tokenKeys === undefined) throw new ConfigError(problems);
  return { sessionSecret, tokenKeys };
}
