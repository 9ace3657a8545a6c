/** The pauses of a request that failed, in milliseconds. */
const PAUSES = { firstMs: 500, longestMs: 60_000 };

/**
 * The longest pause while the service fails, in milliseconds. The sweep adds up to 30 seconds, so the next try comes
 * within two minutes.
 */
export const LONGEST_OUTAGE_PAUSE_MS = 90_000;

/**
 * The pause before the next try: it doubles, and jitter takes away up to half of it. So instances that failed together
 * do not return together.
 *
 * @param attempt failed tries, from 1
 * @param random from 0 up to 1
 * @param pauses the first and the longest pause, in milliseconds
 * @returns milliseconds
 */
export function backoffMs(attempt: number, random: number, pauses = PAUSES): number {
  const full = Math.min(pauses.firstMs * 2 ** (attempt - 1), pauses.longestMs);
  return Math.round(full / 2 + (full / 2) * random);
}
