/** How an error begins that is not the service's (src/client/errors.ts). */
export const OWN_TROUBLE = 'The app itself had trouble: ';

/** What is said behind an error when its tries are used up (src/sync/slice-failure.ts). */
const TRIED = / Tried \d+ times; .*$/s;

/** What the client of Redis says, and Redis itself, in words that mean nothing to an administrator. */
const PLAIN: readonly [RegExp, string][] = [
  [
    /max retries per request|connection is closed|command timed out|socket timeout|stream isn't writeable|\bE(?:CONN|PIPE|TIMEDOUT|HOST|NOTFOUND|AI_AGAIN)|^(?:LOADING|MASTERDOWN|CLUSTERDOWN|BUSY)\b/i,
    'Redis could not be reached.',
  ],
  [/^(?:OOM|MISCONF|READONLY|NOREPLICAS)\b/, 'Redis takes no writes.'],
  [/^(?:NOPERM|NOAUTH|WRONGPASS)\b|user executing the script can't/, 'Redis forbids what the app needs.'],
];

/** Whether a run's error says that it met a Redis that could not be worked with. */
export function isOfRedis(error: string): boolean {
  return plainError(error) !== error;
}

/** A run's error as it is shown: what is Redis's in plain words; its own words are in the log. */
export function plainError(error: string | null): string | null {
  if (!error?.startsWith(OWN_TROUBLE)) return error;
  const reason = error.slice(OWN_TROUBLE.length);
  const plain = PLAIN.find(([words]) => words.test(reason))?.[1];
  return plain === undefined ? error : `${OWN_TROUBLE}${plain}${TRIED.exec(reason)?.[0] ?? ''}`;
}
