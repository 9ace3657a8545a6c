import { redact } from './redaction.ts';

/** The longest reason, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/** The time limit of one check, in milliseconds. */
const CHECK_LIMIT_MS = 2_000;

/** Waits for `work`, in milliseconds at most. @throws Error when it takes longer, or the error of `work` */
export async function within<Value>(limitMs: number, work: () => Promise<Value>): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${limitMs} ms`)), limitMs);
  try {
    return await Promise.race([late, work()]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Finds out whether the process can work: it runs all checks at the same time. A check that rejects has failed.
 *
 * @returns `checks` by name: `ok`, or what is wrong, without secrets
 */
export async function checkReadiness(
  checks: Record<string, () => Promise<unknown>>,
  timeoutMs = CHECK_LIMIT_MS,
): Promise<{ ok: boolean; checks: Record<string, string> }> {
  const reasonOf = (error: unknown) =>
    redact(error instanceof Error ? error.message : String(error)).slice(0, LONGEST_REASON);
  const outcomes = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const outcome = await within(timeoutMs, check).then(() => 'ok', reasonOf);
      return [name, outcome] as const;
    }),
  );
  return { ok: outcomes.every(([, outcome]) => outcome === 'ok'), checks: Object.fromEntries(outcomes) };
}
