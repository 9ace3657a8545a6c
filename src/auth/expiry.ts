import { createHash } from 'node:crypto';
import {
  ACCESS_TOKEN_LIFETIME_MS,
  addMonths,
  REFRESH_TOKEN_LIFETIME_MONTHS,
  ROTATION_WINDOW_MS,
} from '../contract/lifetimes.ts';
import { parseHttpDate } from '../service/headers.ts';

/** The shortest that "6 months" can be read as, in milliseconds: 180 days. */
const SHORTEST_REFRESH_LIFETIME_MS = 180 * 24 * 60 * 60_000;

/** Due times spread over the first half of the rotation window; the other half is for trying again. */
const SPREAD_MS = ROTATION_WINDOW_MS / 2;

/** An access token is renewed this long before its end, in milliseconds, so that no request meets the end. */
export const REFRESH_MARGIN_MS = 2 * 60_000;

/** Numbers above this are milliseconds: as seconds they lie beyond the year 5000. */
const LARGEST_EPOCH_SECONDS = 1e11;

/**
 * Reads `expires_at`, whose format the specification does not show: epoch seconds as a number or a string, or an
 * ISO 8601 date. Anything else, or a moment that no access token of 60 minutes can have, gives the specified lifetime.
 *
 * @param value the member of the token response
 * @param now the service's time, in milliseconds since 1970
 * @returns milliseconds since 1970
 */
export function accessExpiry(value: unknown, now: number): number {
  const latest = now + ACCESS_TOKEN_LIFETIME_MS;
  const read = readMoment(value);
  return read === undefined || read <= now || read > latest + REFRESH_MARGIN_MS ? latest : read;
}

function readMoment(value: unknown): number | undefined {
  if ((typeof value !== 'number' && typeof value !== 'string') || value === '') return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds > LARGEST_EPOCH_SECONDS ? seconds : seconds * 1_000;
  const date = parseHttpDate(String(value));
  return Number.isNaN(date) ? undefined : date;
}

/**
 * Whether an access token is to be renewed before it is used: {@link REFRESH_MARGIN_MS} before its end, or in the last
 * tenth of a short life. All moments are in the service's time, in milliseconds since 1970.
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
 * From when on a refresh token is to be rotated: 24 hours before its earliest possible end, plus the instance's share of
 * half of that window, so that instances installed together are not renewed together.
 *
 * @param issuedAt milliseconds since 1970
 */
export function rotationDueAt(issuedAt: number, instanceId: string): number {
  const share = createHash('sha256').update(instanceId).digest().readUInt32BE(0) / 2 ** 32;
  return issuedAt + SHORTEST_REFRESH_LIFETIME_MS - ROTATION_WINDOW_MS + Math.floor(share * SPREAD_MS);
}
