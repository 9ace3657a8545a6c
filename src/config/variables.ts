import { z } from 'zod';
import { GUARD_LIMIT_SHAPE, readGuardLimit } from '../contract/guard-limit.ts';
import { portProblem } from '../contract/listen-error.ts';
import { EXPOSE_WORDS } from '../contract/sandbox.ts';

const DAY_MINUTES = 24 * 60;
const DAY_MS = DAY_MINUTES * 60_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const INTEGER = /^\d{1,10}$/;
const DECIMAL = /^\d{0,10}(\.\d{1,10})?$/;
/** `docker run --env-file` keeps the quotes around a value. */
export const IN_QUOTES = /^(["']).*\1$/s;

/** A key that encrypts tokens at rest. The encrypted text holds the id, so old keys still decrypt. */
export interface TokenKey {
  id: string;
  /** 32 bytes, for AES-256. */
  key: Buffer;
}

/** Processes that read the configuration; `database`: commands that need the database alone. */
export type ProcessKind = 'start' | 'web' | 'worker' | 'reencrypt' | 'database';

const APP = ['start', 'web', 'worker'] as const;
const WEB = ['start', 'web'] as const;
const WORK = ['start', 'worker'] as const;
const TOKENS = [...APP, 'reencrypt'] as const;
const ALL = [...TOKENS, 'database'] as const;

/** A message that quotes the value: not for secrets. */
const must = (shape: string) => ({
  error: ({ input }: { input?: unknown }) => `${shape} (it is "${String(input).slice(0, 60)}")`,
});

const matching = (shape: RegExp, problem: string) => z.string().regex(shape, problem);

const numberBetween = (min: number, max: number, shape = INTEGER) =>
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
    error: ({ input }) => must(portProblem(String(input)) ?? '').error({ input }),
  })
  .transform(Number);

const host = z.string().regex(/^[A-Za-z0-9.:_-]+$/, must('must be an IP address or a host name'));

const guard = z
  .string()
  .transform(readGuardLimit)
  .refine((limit) => limit !== undefined, GUARD_LIMIT_SHAPE);

const webUrl = z
  .url({ protocol: /^https?$/, error: 'must be an absolute http or https URL' })
  .refine((text) => !/[?#]|\/\/[^/]*@/.test(text), 'must not contain a user name, a query or a fragment')
  .transform((text) => new URL(text).href.replace(/\/+$/, ''));
const originUrl = webUrl.refine((text) => new URL(text).pathname === '/', 'must not contain a path');

const entries = z.string().transform((text) => text.split(',').map((entry) => entry.trim()));

// The app sends access tokens to these origins: `https://*.com` would be everybody.
const originPatterns = entries.pipe(
  z.array(
    originUrl.refine(
      (origin) => !origin.includes('*') || /^https?:\/\/\*(\.[^.*]+){2,}$/.test(origin),
      'may have a "*" only as its whole first label, with two labels behind it at least',
    ),
  ),
);

const tokenKey = matching(
  /^[\w.-]{1,64}:[A-Za-z0-9+/]{43}=?$/,
  'must be an id, a colon, and a key of 32 bytes in Base64',
);
const tokenKeys = entries
  .pipe(z.array(tokenKey))
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
      'has a "%" in its user name or password: write it as "%25"',
    );
const databaseUrl = serverUrl(
  /^postgres(ql)?:\/\/[^/?#]*\/[^?#]|^file:(\/\/(?=\/))?(?!\/\/|.*:memory:)[^?#]+$/i,
  'file: and the path of a database file, without parameters; or postgres://user:password@host/name',
).transform((text) => text.replace(/^file:\/\//, 'file:'));
// BullMQ ignores ioredis' key prefix, and a second database number would contradict the first.
const redisUrl = serverUrl(
  /^rediss?:\/\/[^/?#]+(\/\d*)?(\?(?!.*(keyPrefix|db)=)[^#]*)?$/,
  'a redis:// or rediss:// URL, with nothing but the number of a database behind its host: redis://…:6379/1',
);
// The Basic header joins id and secret with a colon (Authentication, 5).
const clientId = matching(
  /^[\x21-\x39\x3b-\x7e]+$/,
  'must be printable ASCII characters without spaces and colons',
);
const clientSecret = matching(/^\P{Cc}+$/u, 'must not contain control characters');
const sessionSecret = z.string().min(32, 'must have at least 32 characters');
const nodeEnv = z.enum(
  ['development', 'test', 'production'],
  must('must be development, test or production'),
);
const logLevel = z.enum(LOG_LEVELS, must(`must be one of ${LOG_LEVELS.join(', ')}`));
const listOrder = z.enum(['activity', 'created'], must('must be activity or created'));
const exposeWords = z.literal(EXPOSE_WORDS, must(`must be ${EXPOSE_WORDS}, word for word`));
const yesOrNo = z.enum(['yes', 'no'], must('must be yes or no'));
const minutes = numberBetween(0.01, 30 * DAY_MINUTES, DECIMAL);
const seconds = numberBetween(0.01, DAY_MINUTES * 60, DECIMAL);

// A day at most, and no more pauses than anybody waits for.
const pauses = entries.pipe(
  z.array(numberBetween(0.01, DAY_MINUTES * 60, DECIMAL)).max(20, 'must have at most 20 pauses'),
);

const variable = <Schema extends z.ZodType>(
  usedBy: readonly ProcessKind[],
  schema: Schema,
  example: string,
  needed?: string,
) => ({ usedBy, schema, example, needed });

const SANDBOX_ONLY = 'the sandbox is for development only';
const OF_ALL = 'all processes must use the same value';
const OF_BROWSERS = 'browsers return to it after the install';
const MADE_KEYS = '<what npm run keys prints behind TOKEN_KEYS=>';

/** Every variable: the processes that use it, its shape, an example, and why production has no default. */
export const VARIABLES = {
  NODE_ENV: variable(ALL, nodeEnv, 'production'),
  SERVICE_API_URL: variable(APP, webUrl, 'https://api.example.com', SANDBOX_ONLY),
  SERVICE_AUTH_URL: variable(APP, webUrl, 'https://auth.example.com', SANDBOX_ONLY),
  SERVICE_NEXT_ORIGINS: variable(APP, originPatterns, 'https://*.api.example.com'),
  CLIENT_ID: variable(APP, clientId, 'the-client-id-of-your-oauth-application', SANDBOX_ONLY),
  CLIENT_SECRET: variable(APP, clientSecret, 'the-client-secret-of-your-oauth-application', SANDBOX_ONLY),
  SERVICE_PKCE: variable(WEB, yesOrNo, 'yes'),
  PUBLIC_URL: variable(WEB, originUrl, 'https://app.example.com', OF_BROWSERS),
  PROXY_HOPS: variable(WEB, numberBetween(0, 10), '1'),
  PORT: variable(WEB, port, '3000'),
  WORKER_PORT: variable(['start', 'worker'], port, '3001'),
  HOST: variable(APP, host, '127.0.0.1'),
  DATABASE_URL: variable(ALL, databaseUrl, 'file:/var/lib/partner-app/app.db', OF_ALL),
  REDIS_URL: variable(APP, redisUrl, 'redis://127.0.0.1:6379', OF_ALL),
  SESSION_SECRET: variable(WEB, sessionSecret, '<output of: openssl rand -base64 48>', OF_ALL),
  TOKEN_KEYS: variable(TOKENS, tokenKeys, MADE_KEYS, OF_ALL),
  OPERATOR_PASSWORD: variable(WEB, z.string(), '<output of: openssl rand -base64 24>'),
  SYNC_INTERVAL_MINUTES: variable(APP, minutes, '60'),
  CHECK_INTERVAL_SECONDS: variable(APP, numberBetween(0, DAY_MINUTES * 60, DECIMAL), '60'),
  DELETED_RECORDS_DAYS: variable(WORK, numberBetween(0, 3_650), '30'),
  HANDLER_TIMEOUT_SECONDS: variable(WORK, seconds, '60'),
  HANDLER_RETRY_SECONDS: variable(WORK, pauses, '1,5,30,120,300'),
  HANDLER_MEMORY_MB: variable(WORK, numberBetween(32, 65_536), '512'),
  LOG_LEVEL: variable(ALL, logLevel, 'info'),
  GUARD_ANALYTICS: variable(WORK, guard, '1/3'),
  GUARD_RESOURCE: variable(WORK, guard, '5/1'),
  SANDBOX_PORT: variable(APP, port, '4010'),
  SANDBOX_PUBLIC_URL: variable(APP, originUrl, 'https://sandbox.example.com'),
  SANDBOX_WINDOW_MS: variable(['start'], numberBetween(1, DAY_MS), '60000'),
  SANDBOX_LATENCY_MS: variable(['start'], numberBetween(0, DAY_MS), '0'),
  SANDBOX_GUARD_ANALYTICS: variable(WORK, guard, '1/3'),
  SANDBOX_GUARD_RESOURCE: variable(WORK, guard, '5/1'),
  SANDBOX_ORDER: variable(['start'], listOrder, 'created'),
  SANDBOX_HOST: variable(APP, host, '0.0.0.0'),
  SANDBOX_EXPOSE: variable(['start'], exposeWords, EXPOSE_WORDS),
};

export type VariableName = keyof typeof VARIABLES;

/** The given values by variable; undefined for one that is unset, wrong, or not used by the process. */
export type GivenValues = {
  [Name in VariableName]?: z.output<(typeof VARIABLES)[Name]['schema']>;
};

export interface ConfigProblem {
  variable: string;
  /** The end of a sentence that starts with the name; it holds no secret. */
  problem: string;
  /** A value that would do. */
  example?: string;
}

/** The app cannot use the configuration. The message lists every problem with an example, ready to print. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ variable, problem, example }) => {
      const line = `  ${variable} ${problem}`;
      return example === undefined ? line : `${line}\n      example: ${variable}=${example}`;
    });
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
  for (const name of names.filter((each) => env[each])) {
    const { schema, example } = VARIABLES[name];
    const { success, data, error } = schema.safeParse(env[name]);
    if (IN_QUOTES.test(env[name] ?? '')) {
      problems.push({ variable: name, problem: 'has quotes around its value: remove the quotes', example });
    } else if (success) {
      Object.assign(given, { [name]: data });
    } else {
      const messages = error.issues.map(({ path: [entry], message }) =>
        typeof entry === 'number' ? `entry ${entry + 1} ${message}` : message,
      );
      problems.push({ variable: name, problem: messages.join('; '), example });
    }
  }
  return { given, problems };
}
