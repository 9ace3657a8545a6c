import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * What was noted may lie so far ahead of the service's time, in milliseconds: processes whose clocks differ a little
 * have noted it. Further ahead, some answer told a wrong time, and nothing that was counted from it is to be relied on.
 */
const AHEAD_MS = 60 * 60_000;

/** Whether a moment that was noted cannot be; both in milliseconds since 1970. */
export function isAhead(noted: number, now: number): boolean {
  return noted > now + AHEAD_MS;
}

/**
 * The rows of tokens whose rotation was due at a moment: its time had come, or nobody knows it.
 *
 * @param now the service's time, in milliseconds since 1970
 */
export function isDueSince(eb: ExpressionBuilder<Schema, 'tokens'>, moment: number, now: number) {
  const latest = now + AHEAD_MS;
  return eb.or([
    eb('refresh_due_at', '<=', moment),
    eb('refresh_issued_at', '>', latest),
    eb('refreshed_at', '>', latest),
  ]);
}

/** The rows of tokens of which no refresh is known to have gone well since a moment. */
export function isNotRefreshedSince(eb: ExpressionBuilder<Schema, 'tokens'>, moment: number, now: number) {
  return eb.or([eb('refreshed_at', '<=', moment), eb('refreshed_at', '>', now + AHEAD_MS)]);
}
