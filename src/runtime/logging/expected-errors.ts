/** Errors of the app that say all in their message: no line of the code is to blame. */
const EXPECTED_NAMES = new Set([
  'ServiceError',
  'ConsumerError',
  'InstallError',
  'TokenRequestError',
  'DamagedTokenError',
  'StoreError',
  'FileLockTimeoutError',
  'SchemaError',
  'RedisError',
  'WrongKeyError',
  'PrivateRedisLostError',
  'MaxRetriesPerRequestError',
  'TimeoutError',
  'AbortError',
]);

/** Connections that fail or break, and a token route that does not answer as OAuth wants it. */
const EXPECTED_CODE =
  /^(?:ECONN|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_|OAUTH_)/;

/** What a disk, a file or another process does to the database; not what a wrong statement does. */
const DATABASE_OUTAGE = /^SQLITE_(?:BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|CORRUPT|NOTADB|PERM|AUTH|NOMEM)/;

/** What Redis and its client say of an outage, where they have no code for it. */
const REDIS_OUTAGE =
  /^(?:Command timed out|Connection is closed|Socket timeout\.|LOADING|READONLY|OOM|MISCONF|MASTERDOWN|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|ERR max number of clients)/;

/** What a disk, or its rights, does to a file. */
const FILE_OUTAGE = /^(?:EACCES|EDQUOT|EIO|ENOSPC|ENOTDIR|EPERM|EROFS)$/;

/** What tells them, as texts. */
export interface ErrorWords {
  name: string;
  message: string;
  code: unknown;
}

/**
 * Tells errors that come with the trade (the service refuses or does not answer, Redis or the database is away) from
 * those that somebody has to find in the code: only these need a stack.
 *
 * @param outer the errors that this one is the cause of, the outermost first
 */
export function isExpected(error: ErrorWords, outer: readonly ErrorWords[]): boolean {
  const isIntegrators = outer.some(({ name }) => name === 'ConsumerError');
  if (EXPECTED_NAMES.has(error.name)) return !isIntegrators || /^(?:Service|Consumer)/.test(error.name);
  // Whatever else the handler threw is the integrator's to find.
  if (isIntegrators) return false;
  const { code } = error;
  const codes = [EXPECTED_CODE, DATABASE_OUTAGE, FILE_OUTAGE];
  if (typeof code === 'string' && codes.some((known) => known.test(code))) return true;
  if (REDIS_OUTAGE.test(error.message)) return true;
  // An answer that is no JSON.
  const around = outer.at(-1);
  return (
    error.name === 'SyntaxError' &&
    around !== undefined &&
    isExpected(around, outer.slice(0, -1)) &&
    !isAppsOwn(around)
  );
}

/** Unexpected trouble goes on as a ServiceError that repeats what it says. */
function isAppsOwn({ message }: ErrorWords): boolean {
  return message.startsWith('The app itself had trouble');
}
