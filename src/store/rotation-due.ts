import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';

/**
 * What was noted may lie so far ahead of the service's time, in milliseconds: processes whose clocks differ a little
 * have noted it. Further ahead, some answer told a wrong time, and nothing that was counted from it is to be relied on.
 */
const AHEAD_MS = 60 * 60_000;

/** A rotation that left the refresh token as it was is tried again after this at the earliest, in milliseconds. */
const RETRY_MS = 60 * 60_000;

/** And after this at the latest, in milliseconds: no window of 24 hours goes by with fewer than two tries. */
const LONGEST_RETRY_MS = 8 * 60 * 60_000;

/** So long a rotation whose time is known is tried at the shortest distance, in milliseconds: "6 months" are 180 to 184 days. */
const HURRY_MS = 7 * 24 * 60 * 60_000;

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

/**
 * The rows of tokens that a sweep had to try at a moment: due by then, and the last refresh that went well lies far
 * enough back. Where nobody knows when the refresh token was issued, it would be renewed for nothing for up to half a
 * year: the distance doubles from try to try, up to the longest. Where it is known, the distance is the shortest, and the
 * longest if the service has not replaced the refresh token long after its time.
 *
 * @param now the service's time, in milliseconds since 1970
 */
export function isToBeTried(eb: ExpressionBuilder<Schema, 'tokens'>, moment: number, now: number) {
  const dueForMs = eb('refreshed_at', '-', eb.ref('refresh_due_at'));
  const isKnown = eb('refresh_due_at', '>', eb.ref('refresh_issued_at'));
  const isFarEnough = eb.or([
    eb('refreshed_at', '<=', moment - LONGEST_RETRY_MS),
    eb.and([isKnown, eb(dueForMs, '<=', HURRY_MS)]),
    eb(dueForMs, '<=', eb(eb.val(moment), '-', eb.ref('refreshed_at'))),
  ]);
  return eb.and([
    isDueSince(eb, moment, now),
    eb.or([
      eb.and([eb('refreshed_at', '<=', moment - RETRY_MS), isFarEnough]),
      eb('refreshed_at', '>', now + AHEAD_MS),
    ]),
  ]);
}
