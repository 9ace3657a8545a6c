/** The first pause after a failure, in milliseconds; it doubles from then on. */
const FIRST_PAUSE_MS = 500;

/** The longest pause between two tries, in milliseconds. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * The longest pause while the service is in trouble, in milliseconds: with the half minute until a sweep starts what is
 * due, the next try comes two minutes after the last one at the latest.
 */
export const LONGEST_OUTAGE_PAUSE_MS = 90_000;

const PAUSES = { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS };

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
