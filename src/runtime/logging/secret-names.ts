/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

/** Names whose values never reach the log, as {@link normalise} writes them. */
export const SECRET_NAMES = new Set([
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

/** A name without what it may be written with. */
export const normalise = (name: string): string => name.toLowerCase().replace(/[-_]/g, '');

/** Whether a value of this name is a secret: not if it is plainly an error code, or a state of a run. */
export function isSecret(name: string, value: string): boolean {
  const normalised = normalise(name);
  if (!SECRET_NAMES.has(normalised)) return false;
  const isWord = value.length <= MAX_PLAIN_WORD_CHARACTERS && PLAIN_WORD.test(value);
  return !(AMBIGUOUS_NAMES.has(normalised) && isWord);
}
