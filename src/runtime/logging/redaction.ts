import { serializeError } from './serialize-error.ts';

const REDACTED = '[redacted]';
const MAX_DEPTH = 8;

/** Names whose values never reach the log, as {@link normalise} writes them. */
const SECRET_NAMES = new Set([
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'token',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'apitoken',
  'pagetoken',
  'csrftoken',
  'csrf',
  'code',
  'codeverifier',
  'state',
  'clientsecret',
  'secret',
  'sessionsecret',
  'sessionid',
  'sid',
  'password',
  'operatorpassword',
  'tokenkeys',
  'redisurl',
]);

/** `code` and `state` name OAuth's secrets, and also error codes and states of runs: those are plain words. */
const AMBIGUOUS_NAMES = new Set(['code', 'state']);
const PLAIN_WORD = /^(?:[A-Z]+(?:_[A-Z0-9]+)*|[a-z]+(?:_[a-z]+)*)$/;
const MAX_PLAIN_WORD_CHARACTERS = 40;

const normalise = (name: string): string => name.toLowerCase().replace(/[-_]/g, '');

function isSecret(name: string, value: string): boolean {
  const normalised = normalise(name);
  if (!SECRET_NAMES.has(normalised)) return false;
  const isWord = PLAIN_WORD.test(value) && value.length <= MAX_PLAIN_WORD_CHARACTERS;
  return !(AMBIGUOUS_NAMES.has(normalised) && isWord);
}

/**
 * Copies what is to be logged, at any depth: errors as {@link serializeError} writes them, and texts and lists under
 * a secret's name left out. Objects under such a name are looked into.
 */
export function redactValues(value: unknown, name = '', depth = 0): unknown {
  if (value instanceof Error) return serializeError(value);
  if (typeof value === 'string') return isSecret(name, value) ? REDACTED : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[too deep]';
  if (Buffer.isBuffer(value)) return `[${value.length} bytes]`;
  if (Array.isArray(value)) {
    if (SECRET_NAMES.has(normalise(name))) return REDACTED;
    return value.map((item) => redactValues(item, '', depth + 1));
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return value.toJSON();
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, redactValues(item, key, depth + 1)]),
  );
}

/** `"name":"value"` of JSON, and of JSON inside a JSON text, where the quotes are escaped. */
const JSON_MEMBER = /"([\w-]+)"\s*:\s*"((?:[^"\\]|\\.)*)"/g;
const QUOTED_JSON_MEMBER = /\\"([\w-]+)\\"\s*:\s*\\"([^"\\]*)\\"/g;
/** `name=value` of queries and forms. */
const PARAMETER = /\b([\w-]+)=([^\s"'&;,\\]+)/g;
const CREDENTIALS = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;
const USER_INFO = /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@"\\]+@/gi;

/** Blanks what looks like a credential in running text: a message, a stack, a line of the log. */
export function redactText(text: string): string {
  return text
    .replace(JSON_MEMBER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `"${name}":"${REDACTED}"` : all,
    )
    .replace(QUOTED_JSON_MEMBER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `\\"${name}\\":\\"${REDACTED}\\"` : all,
    )
    .replace(PARAMETER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `${name}=${REDACTED}` : all,
    )
    .replace(CREDENTIALS, `$1 ${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`);
}
