/** Lifetime of an access token in milliseconds: 60 minutes (Authentication, 7). */
export const ACCESS_TOKEN_LIFETIME_MS = 60 * 60_000;

/** Lifetime of a refresh token in months (Authentication, 8). The specification does not say which months: see {@link addMonths}. */
export const REFRESH_TOKEN_LIFETIME_MONTHS = 6;

/** How long before its end a refresh token is exchanged for a new one, in milliseconds: 24 hours (Authentication, 8). */
export const ROTATION_WINDOW_MS = 24 * 60 * 60_000;

/**
 * Adds calendar months in UTC: our reading of "6 months". A day that the month does not have becomes its last day.
 *
 * @param epochMs a moment in milliseconds since 1970
 * @returns the moment so many months later, in milliseconds since 1970
 */
export function addMonths(epochMs: number, months: number): number {
  const date = new Date(epochMs);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, lastDay));
  return date.getTime();
}
