import { expect, test } from 'vitest';
import {
  accessExpiry,
  needsRefresh,
  REFRESH_MARGIN_MS,
  refreshExpiry,
  rotationDueAt,
} from '../../src/auth/expiry.ts';
import { addMonths } from '../../src/contract/lifetimes.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SOON = NOW + 30 * MINUTE_MS;

test.each<[string, unknown, number]>([
  ['epoch seconds as a string', String(SOON / 1_000), SOON],
  ['epoch seconds as a number', SOON / 1_000, SOON],
  ['epoch seconds with a fraction', SOON / 1_000 + 0.5, SOON + 500],
  ['epoch milliseconds', SOON, SOON],
  ['epoch milliseconds as a string', String(SOON), SOON],
  ['an ISO date in UTC', '2026-03-01T12:30:00Z', SOON],
  ['an ISO date with milliseconds', '2026-03-01T12:30:00.250Z', SOON + 250],
  ['an ISO date with an offset', '2026-03-01T14:30:00+02:00', SOON],
  ['the specified hour to the second', NOW / 1_000 + 3_600, NOW + HOUR_MS],
  ['a service whose clock is a little ahead', NOW / 1_000 + 3_660, NOW + HOUR_MS + MINUTE_MS],
])('expires_at as %s', (_what, value, expected) => {
  expect(accessExpiry(value, NOW)).toBe(expected);
});

test.each<[string, unknown]>([
  ['absent', undefined],
  ['null', null],
  ['empty', ''],
  ['blank', '  '],
  ['words', 'in an hour'],
  ['an object', {}],
  ['a truth', true],
  ['NaN', Number.NaN],
  ['endless', 'Infinity'],
  ['seconds from now, not since 1970', 3_600],
  ['in the past', NOW / 1_000 - 1],
  ['just now', NOW / 1_000],
  ['later than an access token can live', NOW / 1_000 + 2 * 3_600],
  ['a negative number', -5],
])('expires_at that is %s: the specified 60 minutes', (_what, value) => {
  expect(accessExpiry(value, NOW)).toBe(NOW + HOUR_MS);
});

test('an access token is renewed before its end, by a margin', () => {
  const issuedAt = NOW - HOUR_MS;
  expect(needsRefresh(NOW + REFRESH_MARGIN_MS + 1, issuedAt, NOW)).toBe(false);
  expect(needsRefresh(NOW + REFRESH_MARGIN_MS, issuedAt, NOW)).toBe(true);
  expect(needsRefresh(NOW - DAY_MS, issuedAt, NOW)).toBe(true);
});

test('a token that lives a minute is not renewed before every request', () => {
  const endsAt = NOW + MINUTE_MS;
  expect(needsRefresh(endsAt, NOW, NOW)).toBe(false);
  expect(needsRefresh(endsAt, NOW, endsAt - 6_001)).toBe(false);
  expect(needsRefresh(endsAt, NOW, endsAt - 6_000)).toBe(true);
});

test('a refresh token ends six months later, as far as anyone can say', () => {
  expect(new Date(refreshExpiry(Date.UTC(2025, 7, 31, 9))).toISOString()).toBe('2026-02-28T09:00:00.000Z');
});

test('rotation is due in the first half of the last 24 hours of the shortest reading, 180 days', () => {
  for (let index = 0; index < 1_000; index++) {
    const due = rotationDueAt(NOW, `ins_${index}`);
    expect(due).toBeGreaterThanOrEqual(NOW + 179 * DAY_MS);
    expect(due).toBeLessThan(NOW + 179.5 * DAY_MS);
    expect(Number.isInteger(due)).toBe(true);
  }
});

test('rotation is due before the last half day of any calendar reading of six months', () => {
  for (let day = 0; day < 4 * 366; day++) {
    const issuedAt = NOW + day * DAY_MS;
    expect(rotationDueAt(issuedAt, 'ins_1')).toBeLessThan(addMonths(issuedAt, 6) - DAY_MS / 2);
  }
});
