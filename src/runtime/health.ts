import { redact } from './redaction.ts';

/** How much is told of what is wrong, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/** How long a check may take, in milliseconds. */
const CHECK_LIMIT_MS = 2_000;

/** Whether the process can do its work, and what stands in its way. */
export interface Readiness {
  ok: boolean;
  /** By the check's name: `ok`, or what is wrong, without secrets. */
  checks: Record<string, string>;
}

/**
 * Runs all checks at the same time, each within the limit.
 *
 * @param checks by name; one that rejects has failed
 * @param timeoutMs for each of them
 */
export async function checkReadiness(
  checks: Record<string, () => Promise<unknown>>,
  timeoutMs = CHECK_LIMIT_MS,
): Promise<Readiness> {
  const entries = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await outcomeOf(check, timeoutMs)] as const),
  );
  return { ok: entries.every(([, outcome]) => outcome === 'ok'), checks: Object.fromEntries(entries) };
}

async function outcomeOf(check: () => Promise<unknown>, timeoutMs: number): Promise<string> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(resolve, timeoutMs, `no answer within ${timeoutMs} ms`);
  try {
    return await Promise.race([late, check().then(() => 'ok')]);
  } catch (error) {
    return redact(error instanceof Error ? error.message : String(error)).slice(0, LONGEST_REASON);
  } finally {
    clearTimeout(timer);
  }
}
