import { z } from 'zod';
import { GUARD_LIMIT_SHAPE, readGuardLimit } from '../contract/guard-limit.ts';
import { EXPOSE_WORDS } from '../contract/sandbox.ts';
import { tokenKeys } from './token-keys.ts';
import { baseUrl, originPatterns, originUrl } from './urls.ts';

const MIN_SECRET_CHARACTERS = 32;
const MIN_SYNC_INTERVAL_MINUTES = 0.01;
const MAX_SYNC_INTERVAL_MINUTES = 30 * 24 * 60;
const MIN_HANDLER_SECONDS = 0.01;
const MAX_HANDLER_SECONDS = 24 * 60 * 60;
const MAX_DELETED_RECORDS_DAYS = 3_650;
const MAX_WINDOW_MS = 24 * 60 * 60_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const numberBetween = (min: number, max: number, shape: RegExp, what: string) =>
  z.string().transform((text, context) => {
    const value = shape.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    context.addIssue(`must be ${what} from ${min} to ${max}`);
    return z.NEVER;
  });
const wholeNumber = (min: number, max: number) => numberBetween(min, max, /^\d{1,10}$/, 'a whole number');
const port = wholeNumber(0, 65_535);
const MAX_PROXY_HOPS = 10;

const hostName = z.string().regex(/^[A-Za-z0-9.:_-]+$/, { error: 'must be an IP address or a host name' });

const guardLimit = z.string().transform((text, context) => {
  const limit = readGuardLimit(text);
  if (limit !== undefined) return limit;
  context.addIssue(GUARD_LIMIT_SHAPE);
  return z.NEVER;
});

/** Adds an issue unless the user name and the password of a URL are percent-encoded. */
function checkCredentials(url: URL, context: { addIssue(issue: string): void }): boolean {
  try {
    for (const encoded of [url.username, url.password]) decodeURIComponent(encoded);
    return true;
  } catch {
    context.addIssue(
      'has a user name or password that is not percent-encoded: a "%" has to stand there as "%25"',
    );
    return false;
  }
}

const databaseUrl = z.string().transform((text, context) => {
  if (/^postgres(ql)?:/i.test(text)) {
    const url = URL.parse(text);
    if (url !== null && url.pathname.length > 1) return checkCredentials(url, context) ? text : z.NEVER;
    context.addIssue('must be a URL with the name of a database: postgres://user:password@host:5432/name');
    return z.NEVER;
  }
  const path = /^file:(?:\/\/(?=\/))?([^?#]+)$/.exec(text)?.[1];
  if (path === undefined || path.startsWith('//') || path.includes(':memory:')) {
    context.addIssue(
      'must be file: and the path of a database file, without parameters; or postgres://user:password@host/name',
    );
    return z.NEVER;
  }
  return `file:${path}`;
});

const redisUrl = z.string().transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    context.addIssue('must be a redis:// or rediss:// URL');
    return z.NEVER;
  }
  if (![url.pathname.slice(1), url.searchParams.get('db') ?? ''].every((number) => /^\d*$/.test(number))) {
    context.addIssue('may have nothing but the number of a database behind its host: redis://…:6379/1');
    return z.NEVER;
  }
  if (url.searchParams.has('keyPrefix')) {
    context.addIssue(
      'may have no keyPrefix, which the queues do not heed: give the app the number of a database of its own, redis://…:6379/1, or another Redis',
    );
    return z.NEVER;
  }
  return checkCredentials(url, context) ? text : z.NEVER;
});

/** A variable of the environment: how its text is read, a value that would do, and whether its value may be shown. */
interface Variable<Schema extends z.ZodType> {
  schema: Schema;
  example: string;
  /** Put into the message when it is wrong; left out for what may hold a secret. */
  shown?: boolean;
}

const variable = <Schema extends z.ZodType>(definition: Variable<Schema>): Variable<Schema> => definition;

/** Every variable that the app and the sandbox read; what goes together with what is the business of loadConfig. */
export const VARIABLES = {
  NODE_ENV: variable({
    schema: z.enum(['development', 'test', 'production'], {
      error: 'must be development, test or production',
    }),
    example: 'production',
    shown: true,
  }),
  SERVICE_API_URL: variable({ schema: baseUrl, example: 'https://api.example.com' }),
  SERVICE_AUTH_URL: variable({ schema: baseUrl, example: 'https://auth.example.com' }),
  SERVICE_NEXT_ORIGINS: variable({ schema: originPatterns, example: 'https://*.api.example.com' }),
  CLIENT_ID: variable({
    // The Basic header joins id and secret with a colon (Authentication, 5).
    schema: z.string().regex(/^[\x21-\x39\x3b-\x7e]+$/, {
      error: 'must be printable ASCII characters without spaces and colons',
    }),
    example: 'the-client-id-of-your-oauth-application',
  }),
  CLIENT_SECRET: variable({
    schema: z.string().regex(/^\P{Cc}+$/u, { error: 'must not hold control characters' }),
    example: 'the-client-secret-of-your-oauth-application',
  }),
  PUBLIC_URL: variable({ schema: originUrl, example: 'https://app.example.com' }),
  PROXY_HOPS: variable({ schema: wholeNumber(0, MAX_PROXY_HOPS), example: '1', shown: true }),
  PORT: variable({ schema: port, example: '3000', shown: true }),
  WORKER_PORT: variable({ schema: port, example: '3001', shown: true }),
  HOST: variable({
    schema: hostName,
    example: '127.0.0.1',
    shown: true,
  }),
  DATABASE_URL: variable({ schema: databaseUrl, example: 'file:/var/lib/partner-app/app.db' }),
  REDIS_URL: variable({ schema: redisUrl, example: 'redis://127.0.0.1:6379' }),
  SESSION_SECRET: variable({
    schema: z.string().min(MIN_SECRET_CHARACTERS, {
      error: `must have at least ${MIN_SECRET_CHARACTERS} characters`,
    }),
    example: '<output of: openssl rand -base64 48>',
  }),
  TOKEN_KEYS: variable({ schema: tokenKeys, example: '<what npm run keys prints behind TOKEN_KEYS=>' }),
  OPERATOR_PASSWORD: variable({ schema: z.string(), example: '<output of: openssl rand -base64 24>' }),
  SYNC_INTERVAL_MINUTES: variable({
    schema: numberBetween(
      MIN_SYNC_INTERVAL_MINUTES,
      MAX_SYNC_INTERVAL_MINUTES,
      /^\d{0,10}(\.\d{1,10})?$/,
      'a number',
    ),
    example: '60',
    shown: true,
  }),
  DELETED_RECORDS_DAYS: variable({
    schema: wholeNumber(0, MAX_DELETED_RECORDS_DAYS),
    example: '30',
    shown: true,
  }),
  HANDLER_TIMEOUT_SECONDS: variable({
    schema: numberBetween(MIN_HANDLER_SECONDS, MAX_HANDLER_SECONDS, /^\d{0,10}(\.\d{1,10})?$/, 'a number'),
    example: '60',
    shown: true,
  }),
  LOG_LEVEL: variable({
    schema: z.enum(LOG_LEVELS, { error: `must be one of ${LOG_LEVELS.join(', ')}` }),
    example: 'info',
    shown: true,
  }),
  GUARD_ANALYTICS: variable({ schema: guardLimit, example: '1/3', shown: true }),
  GUARD_RESOURCE: variable({ schema: guardLimit, example: '5/1', shown: true }),
  SANDBOX_PORT: variable({ schema: port, example: '4010', shown: true }),
  SANDBOX_WINDOW_MS: variable({ schema: wholeNumber(1, MAX_WINDOW_MS), example: '60000', shown: true }),
  SANDBOX_LATENCY_MS: variable({ schema: wholeNumber(0, MAX_WINDOW_MS), example: '0', shown: true }),
  SANDBOX_GUARD_ANALYTICS: variable({ schema: guardLimit, example: '1/3', shown: true }),
  SANDBOX_GUARD_RESOURCE: variable({ schema: guardLimit, example: '5/1', shown: true }),
  SANDBOX_HOST: variable({ schema: hostName, example: '0.0.0.0', shown: true }),
  SANDBOX_EXPOSE: variable({
    schema: z.literal(EXPOSE_WORDS, { error: `must be ${EXPOSE_WORDS}, word for word` }),
    example: EXPOSE_WORDS,
    shown: true,
  }),
};

/** Name of a variable that the configuration knows. */
export type VariableName = keyof typeof VARIABLES;

/** What was given, by variable; undefined for what is unset or wrong. */
export type GivenValues = {
  [Name in VariableName]: z.output<(typeof VARIABLES)[Name]['schema']> | undefined;
};
