import { z } from 'zod';
import { GUARD_LIMIT_SHAPE, readGuardLimit } from '../contract/guard-limit.ts';
import { portProblem } from '../contract/listen-error.ts';
import { EXPOSE_WORDS } from '../contract/sandbox.ts';

const DAY_MINUTES = 24 * 60;
const DAY_MS = DAY_MINUTES * 60_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const DECIMAL = /^\d{0,10}(\.\d{1,10})?$/;
/** Container tools leave the quotes of an env file around its values (docker run --env-file). */
const IN_QUOTES = /^(["']).*\1$/s;

/** A key that encrypts tokens at rest; the id goes into the envelope, so that old keys still decrypt. */
export interface TokenKey {
  id: string;
  /** 32 bytes, for AES-256. */
  key: Buffer;
}

/** Processes that read the configuration; `database`: commands that work on the database alone. */
export type ProcessKind = 'start' | 'web' | 'worker' | 'reencrypt' | 'database';

const APP = ['start', 'web', 'worker'] as const;
const WEB = ['start', 'web'] as const;
const WORK = ['start', 'worker'] as const;
const ALL = [...APP, 'reencrypt', 'database'] as const;

/** The message about a value that is no secret: it quotes the value. */
const must = (shape: string) => ({
  error: ({ input }: { input?: unknown }) => `${shape} (it is "${String(input).slice(0, 60)}")`,
});

const numberBetween = (min: number, max: number, shape = /^\d{1,10}$/) =>
  z
    .string()
    .refine(
      (text) => shape.test(text) && Number(text) >= min && Number(text) <= max,
      must(`must be a ${shape === DECIMAL ? '' : 'whole '}number from ${min} to ${max}`),
    )
    .transform(Number);

const port = z
  .string()
  .refine((text) => portProblem(text) === undefined, {
    error: ({ input }) => `${portProblem(String(input))} (it is "${String(input).slice(0, 60)}")`,
  })
  .transform(Number);

const host = z.string().regex(/^[A-Za-z0-9.:_-]+$/, must('must be an IP address or a host name'));

const guard = z
  .string()
  .transform(readGuardLimit)
  .refine((limit) => limit !== undefined, GUARD_LIMIT_SHAPE);

const webUrl = z
  .url({ protocol: /^https?$/, error: 'must be an absolute http or https URL' })
  .refine((text) => !/[?#]/.test(text), 'must not contain a query or a fragment')
  .transform((text) => new URL(text))
  .refine(({ username, password }) => username + password === '', 'must not contain a user name or password');
const baseUrl = webUrl.transform(({ href }) => href.replace(/\/+$/, ''));
const originUrl = webUrl
  .refine(
    ({ pathname }) => /^\/*$/.test(pathname),
    'must not contain a path: the app is served from the root',
  )
  .transform(({ origin }) => origin);

const entries = z.string().transform((text) => text.split(',').map((entry) => entry.trim()));

// The access token is sent to these origins: `https://*.com` would be everybody.
const originPatterns = entries.pipe(
  z.array(
    originUrl.refine(
      (origin) => !origin.includes('*') || /^https?:\/\/\*(\.[^.*]+){2,}$/.test(origin),
      'may have a "*" only as its whole first label, with two labels behind it at least',
    ),
  ),
);

const tokenKeys = entries
  .pipe(
    z.array(
      z
        .string()
        .regex(
          /^[\w.-]{1,64}:[A-Za-z0-9+/]{43}=?$/,
          'must be an id, a colon, and a key of 32 bytes in Base64',
        ),
    ),
  )
  .transform((texts) =>
    texts.map((text): TokenKey => {
      const [id = '', key = ''] = text.split(':');
      return { id, key: Buffer.from(key, 'base64') };
    }),
  )
  .refine((keys) => new Set(keys.map(({ id }) => id)).size === keys.length, 'must not use an id twice')
  .refine(
    (keys) => new Set(keys.map(({ key }) => key.toString('hex'))).size === keys.length,
    'must not contain a key twice',
  );

const serverUrl = (shape: RegExp, what: string) =>
  z
    .string()
    .refine((text) => shape.test(text) && URL.canParse(text), `must be ${what}`)
    .refine(
      (text) => !/\/\/[^/@]*%(?![\da-f]{2})/i.test(text),
      'has a "%" in its user name or password that has to stand there as "%25"',
    );
const databaseUrl = serverUrl(
  /^postgres(ql)?:\/\/[^/?#]*\/[^?#]|^file:(\/\/(?=\/))?(?!\/\/|.*:memory:)[^?#]+$/i,
  'file: and the path of a database file, without parameters; or postgres://user:password@host/name',
).transform((text) => text.replace(/^file:\/\//, 'file:'));
// The queues heed no key prefix, and two places for the number of a database would contradict each other.
const redisUrl = serverUrl(
  /^rediss?:\/\/[^/?#]+(\/\d*)?(\?(?!.*(keyPrefix|db)=)[^#]*)?$/,
  'a redis:// or rediss:// URL, with nothing but the number of a database behind its host: redis://…:6379/1',
);

interface Variable<Schema extends z.ZodType> {
  usedBy: readonly ProcessKind[];
  schema: Schema;
  example: string;
  needed: string | undefined;
}

const variable = <Schema extends z.ZodType>(
  usedBy: readonly ProcessKind[],
  schema: Schema,
  example: string,
  needed?: string,
): Variable<Schema> => ({ usedBy, schema, example, needed });

const SANDBOX_ONLY = 'the sandbox is for development only';
const OF_ALL = 'all processes have to use the same one';

/** Every variable: which processes use it, its shape, a value that would do, and why production has no default. */
export const VARIABLES = {
  NODE_ENV: variable(
    ALL,
    z.enum(['development', 'test', 'production'], must('must be development, test or production')),
    'production',
  ),
  SERVICE_API_URL: variable(APP, baseUrl, 'https://api.example.com', SANDBOX_ONLY),
  SERVICE_AUTH_URL: variable(APP, baseUrl, 'https://auth.example.com', SANDBOX_ONLY),
  SERVICE_NEXT_ORIGINS: variable(APP, originPatterns, 'https://*.api.example.com'),
  CLIENT_ID: variable(
    APP,
    // The Basic header joins id and secret with a colon (Authentication, 5).
    z
      .string()
      .regex(/^[\x21-\x39\x3b-\x7e]+$/, 'must be printable ASCII characters without spaces and colons'),
    'the-client-id-of-your-oauth-application',
    SANDBOX_ONLY,
  ),
  CLIENT_SECRET: variable(
    APP,
    z.string().regex(/^\P{Cc}+$/u, 'must not hold control characters'),
    'the-client-secret-of-your-oauth-application',
    SANDBOX_ONLY,
  ),
  PUBLIC_URL: variable(
    WEB,
    originUrl,
    'https://app.example.com',
    'browsers come back to it after the install',
  ),
  PROXY_HOPS: variable(WEB, numberBetween(0, 10), '1'),
  PORT: variable(WEB, port, '3000'),
  WORKER_PORT: variable(['worker'], port, '3001'),
  HOST: variable(APP, host, '127.0.0.1'),
  DATABASE_URL: variable(ALL, databaseUrl, 'file:/var/lib/partner-app/app.db', OF_ALL),
  REDIS_URL: variable(APP, redisUrl, 'redis://127.0.0.1:6379', OF_ALL),
  SESSION_SECRET: variable(
    WEB,
    z.string().min(32, 'must have at least 32 characters'),
    '<output of: openssl rand -base64 48>',
    OF_ALL,
  ),
  TOKEN_KEYS: variable(
    [...APP, 'reencrypt'],
    tokenKeys,
    '<what npm run keys prints behind TOKEN_KEYS=>',
    OF_ALL,
  ),
  OPERATOR_PASSWORD: variable(WEB, z.string(), '<output of: openssl rand -base64 24>'),
  SYNC_INTERVAL_MINUTES: variable(APP, numberBetween(0.01, 30 * DAY_MINUTES, DECIMAL), '60'),
  DELETED_RECORDS_DAYS: variable(WORK, numberBetween(0, 3_650), '30'),
  HANDLER_TIMEOUT_SECONDS: variable(WORK, numberBetween(0.01, DAY_MINUTES * 60, DECIMAL), '60'),
  LOG_LEVEL: variable(ALL, z.enum(LOG_LEVELS, must(`must be one of ${LOG_LEVELS.join(', ')}`)), 'info'),
  GUARD_ANALYTICS: variable(WORK, guard, '1/3'),
  GUARD_RESOURCE: variable(WORK, guard, '5/1'),
  SANDBOX_PORT: variable(APP, port, '4010'),
  SANDBOX_PUBLIC_URL: variable(APP, originUrl, 'https://sandbox.example.com'),
  SANDBOX_WINDOW_MS: variable(['start'], numberBetween(1, DAY_MS), '60000'),
  SANDBOX_LATENCY_MS: variable(['start'], numberBetween(0, DAY_MS), '0'),
  SANDBOX_GUARD_ANALYTICS: variable(WORK, guard, '1/3'),
  SANDBOX_GUARD_RESOURCE: variable(WORK, guard, '5/1'),
  SANDBOX_HOST: variable(APP, host, '0.0.0.0'),
  SANDBOX_EXPOSE: variable(
    ['start'],
    z.literal(EXPOSE_WORDS, must(`must be ${EXPOSE_WORDS}, word for word`)),
    EXPOSE_WORDS,
  ),
};

/** Name of a variable that the configuration knows. */
export type VariableName = keyof typeof VARIABLES;

/** What was given, by variable; undefined for what is unset, wrong, or not used by the process. */
export type GivenValues = {
  [Name in VariableName]?: z.output<(typeof VARIABLES)[Name]['schema']>;
};

/** One wrong or missing variable of the environment. */
export interface ConfigProblem {
  variable: string;
  /** What is wrong, as the end of a sentence that starts with the name; never holds a secret. */
  problem: string;
  /** A value that would do. */
  example: string;
}

/** The configuration cannot be used; the message lists every problem, one a line, ready to print. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(
      ({ variable, problem, example }) => `  ${variable} ${problem}\n      example: ${variable}=${example}`,
    );
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
    super(`The configuration has ${count} (.env.example explains every variable):\n${lines.join('\n')}`);
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Reads the variables of these names, each on its own. An empty value counts as unset. */
export function readVariables(
  env: NodeJS.ProcessEnv,
  names: readonly VariableName[],
): { given: GivenValues; problems: ConfigProblem[] } {
  const given: GivenValues = {};
  const problems: ConfigProblem[] = [];
  for (const name of names) {
    const text = env[name];
    if (!text) continue;
    const { schema, example } = VARIABLES[name];
    const result = schema.safeParse(text);
    if (IN_QUOTES.test(text)) {
      const problem = 'stands in quotes, which are no part of the value: remove the quotes';
      problems.push({ variable: name, problem, example });
    } else if (result.success) {
      Object.assign(given, { [name]: result.data });
    } else {
      const messages = result.error.issues.map(({ path: [entry], message }) =>
        typeof entry === 'number' ? `entry ${entry + 1} ${message}` : message,
      );
      problems.push({ variable: name, problem: messages.join('; '), example });
    }
  }
  return { given, problems };
}
