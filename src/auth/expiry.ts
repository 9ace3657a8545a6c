import { createHash } from 'node:crypto';
import {
  ACCESS_TOKEN_LIFETIME_MS,
  addMonths,
  REFRESH_TOKEN_LIFETIME_MONTHS,
  ROTATION_WINDOW_MS,
} from '../contract/lifetimes.ts';
import { parseHttpDate } from '../service/headers.ts';

/** The shortest reading of "6 months", 180 days, in milliseconds. */
const SHORTEST_REFRESH_LIFETIME_MS = 180 * 24 * 60 * 60_000;

/** Due times spread over the first half of the rotation window. The second half is for retries. */
const SPREAD_MS = ROTATION_WINDOW_MS / 2;

/** How long before its end an access token is refreshed, in milliseconds. */
export const REFRESH_MARGIN_MS = 2 * 60_000;

/** Larger numbers are milliseconds: as seconds they would lie beyond the year 5000. */
const LARGEST_EPOCH_SECONDS = 1e11;

/**
 * Reads `expires_at`: epoch seconds as a number or a string, or an ISO 8601 date. Any other value, and a time that is past
 * or later than 60 minutes, gives the specified 60 minutes.
 *
 * @param value `expires_at` of the token response
 * @param now the service's time, in milliseconds since 1970
 * @returns milliseconds since 1970
 */
export function accessExpiry(value: unknown, now: number): number {
  const latest = now + ACCESS_TOKEN_LIFETIME_MS;
  const read = readTime(value);
  return read === undefined || read <= now || read > latest + REFRESH_MARGIN_MS ? latest : read;
}

function readTime(value: unknown): number | undefined {
  if ((typeof value !== 'number' && typeof value !== 'string') || value === '') return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds > LARGEST_EPOCH_SECONDS ? seconds : seconds * 1_000;
  const date = parseHttpDate(String(value));
  return Number.isNaN(date) ? undefined : date;
}

/**
 * Whether an access token needs a refresh: {@link REFRESH_MARGIN_MS} before its end, or in the last tenth of a short
 * lifetime. Times are the service's, in milliseconds since 1970.
 */
export function needsRefresh(accessExpiresAt: number, issuedAt: number, now: number): boolean {
  const margin = Math.min(REFRESH_MARGIN_MS, Math.max(0, accessExpiresAt - issuedAt) / 10);
  return now >= accessExpiresAt - margin;
}

/** The likely end of a refresh token (Authentication, 8: 6 months). */
export function refreshExpiry(issuedAt: number): number {
  return addMonths(issuedAt, REFRESH_TOKEN_LIFETIME_MONTHS);
}

/**
 * When a refresh token is due for rotation: 24 hours before its earliest end, plus up to 12 hours that depend on the
 * instance, so that instances installed together do not rotate together.
 *
 * @param issuedAt milliseconds since 1970
 * @returns milliseconds since 1970
 */
export function rotationDueAt(issuedAt: number, instanceId: string): number {
  const share = createHash('sha256').update(instanceId).digest().readUInt32BE(0) / 2 ** 32;
  return issuedAt + SHORTEST_REFRESH_LIFETIME_MS - ROTATION_WINDOW_MS + Math.floor(share * SPREAD_MS);
}
