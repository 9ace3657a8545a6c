import { parseHttpDate } from './http-date.ts';

/** The first pause after a failure, in milliseconds; it doubles from then on. */
export const FIRST_PAUSE_MS = 500;

/** The longest pause between two tries, in milliseconds. */
export const LONGEST_PAUSE_MS = 60_000;

/**
 * The longest pause while the service is in trouble, in milliseconds: with the half minute until a sweep starts what is
 * due, the next try comes two minutes after the last one at the latest.
 */
export const LONGEST_OUTAGE_PAUSE_MS = 90_000;

const PAUSES = { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS };

/**
 * The longest that we believe a `retry-after`, in milliseconds: a service that says more is asked again then. A guard is
 * believed in full, as long as that makes sense.
 */
export const LONGEST_RETRY_AFTER_MS = 15 * 60_000;
export const LONGEST_GUARD_WAIT_MS = 24 * 60 * 60_000;

/** The shortest wait after a refusal, in milliseconds, whatever the service says: never a tight loop. */
const SHORTEST_RETRY_AFTER_MS = 50;

/**
 * The pause before the next try: doubling, with "equal jitter" (between half and all of it), so that many
 * instances that failed together do not come back together.
 *
 * @param attempt how many tries have failed, from 1
 * @param random a number from 0 up to 1
 * @param steps the first pause and the longest, in milliseconds
 * @returns milliseconds
 */
export function backoffMs(attempt: number, random: number, steps = PAUSES): number {
  const full = Math.min(steps.firstMs * 2 ** (attempt - 1), steps.longestMs);
  return Math.round(full / 2 + (full / 2) * random);
}

/** Between the values of a header that came several times; not within a date, behind its weekday or before its year. */
const BETWEEN_VALUES = /(?<!\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}),(?! ?\d{4} \d\d:)/i;

/** Some name the unit, though it is always the same. */
const SECONDS = /(?<=\d) ?s(?:ec(?:ond)?s?)?$/i;

/**
 * Reads a `retry-after` header (Errors): seconds, whole or decimal, also with their unit; an HTTP date is understood too.
 *
 * @param value the header, if there was one; of several values, with commas between them, the longest wait counts
 * @param now the service's time in milliseconds since 1970
 * @param longestMs the longest wait that is believed
 * @returns milliseconds to wait, kept within reason; undefined when the header is absent or makes no sense
 */
export function retryAfterMs(
  value: string | undefined,
  now: number,
  longestMs = LONGEST_RETRY_AFTER_MS,
): number | undefined {
  const values = value?.split(BETWEEN_VALUES) ?? [];
  const waits = values.map((text) => readWait(text.trim(), now)).filter((wait) => !Number.isNaN(wait));
  return waits.length === 0 ? undefined : withinReason(Math.max(...waits), longestMs);
}

/** A number of milliseconds in a sentence. */
const MILLISECONDS = /(?<![\d.,])\d+(?:\.\d+)?(?= ?(?:ms|milliseconds?)\b)/gi;

/**
 * Reads the wait that the message of a 429 states (Errors), for one that has no `retry-after`.
 *
 * @param longestMs the longest wait that is believed
 * @returns milliseconds to wait, kept within reason: of several the longest; undefined when there is none
 */
export function statedWaitMs(message: string, longestMs = LONGEST_RETRY_AFTER_MS): number | undefined {
  const waits = (message.match(MILLISECONDS) ?? []).map(Number);
  return waits.length === 0 ? undefined : withinReason(Math.max(...waits), longestMs);
}

function withinReason(ms: number, longestMs: number): number {
  return Math.min(Math.ceil(Math.max(ms, SHORTEST_RETRY_AFTER_MS)), longestMs);
}

/** In milliseconds; NaN for what makes no sense. */
function readWait(text: string, now: number): number {
  if (text === '') return Number.NaN;
  const seconds = Number(text.replace(SECONDS, ''));
  return Number.isNaN(seconds) ? parseHttpDate(text, now) - now : seconds * 1_000;
}
