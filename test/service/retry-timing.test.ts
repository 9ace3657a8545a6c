import { expect, test } from 'vitest';
import {
  backoffMs,
  FIRST_PAUSE_MS,
  LONGEST_PAUSE_MS,
  retryAfterMs,
  statedWaitMs,
} from '../../src/service/retry-timing.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const ALMOST_ONE = 1 - 2 ** -53;
/** No longer wait is believed: the budget would forget it before its end. */
const QUARTER_OF_AN_HOUR_MS = 15 * 60_000;

test('the pause lies between half of a doubling step and all of it', () => {
  for (let attempt = 1; attempt <= 7; attempt++) {
    const full = FIRST_PAUSE_MS * 2 ** (attempt - 1);
    expect(backoffMs(attempt, 0)).toBe(full / 2);
    expect(backoffMs(attempt, 0.5)).toBe(full * 0.75);
    expect(backoffMs(attempt, ALMOST_ONE)).toBe(full);
  }
});

test.each([8, 20, 1_000, 10_000])('the pause does not grow beyond its cap (attempt %d)', (attempt) => {
  expect(backoffMs(attempt, ALMOST_ONE)).toBe(LONGEST_PAUSE_MS);
  expect(backoffMs(attempt, 0)).toBe(LONGEST_PAUSE_MS / 2);
});

test.each([
  ['whole seconds', '3', 3_000],
  ['decimal seconds', '0.25', 250],
  ['parts of a millisecond, rounded up', '1.0001', 1_001],
  ['spaces around', ' 2 ', 2_000],
  ['an HTTP date', 'Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['zero: never a tight loop', '0', 50],
  ['a negative number', '-7', 50],
  ['a date that has passed', 'Sun, 01 Mar 2026 11:59:00 GMT', 50],
  ['more than is believed', '86400', QUARTER_OF_AN_HOUR_MS],
  ['endless', 'Infinity', QUARTER_OF_AN_HOUR_MS],
  ['a date far away', 'Mon, 01 Mar 2027 12:00:00 GMT', QUARTER_OF_AN_HOUR_MS],
  ['seconds with their unit', '58s', 58_000],
  ['seconds with their unit behind a space', '5 sec', 5_000],
  ['seconds with their unit in full', '0.5 Seconds', 500],
  ['the same twice', '58, 58', 58_000],
  ['several, the longest last', '1,3, 58s', 58_000],
  ['several, the longest first', '58, 0', 58_000],
  ['a number beside nothing', ', 58,', 58_000],
  ['a number beside words', 'soon, 58', 58_000],
  ['a number, and words', '58, soon', 58_000],
  ['a number and a date', '58, Sun, 01 Mar 2026 12:01:30 GMT', 90_000],
  ['a date and a number', 'Sun, 01 Mar 2026 12:00:30 GMT, 58', 58_000],
  ['two dates', 'Sun, 01 Mar 2026 12:00:30 GMT, Sunday, 01-Mar-26 12:00:50 GMT', 50_000],
  ['a date with a leap second', 'Sun, 01 Mar 2026 12:00:60 GMT', 60_000],
  ['a date in a form of its own', 'March 1, 2026 12:00:30 GMT', 30_000],
])('retry-after: %s', (_what, header, expected) => {
  expect(retryAfterMs(header, NOW)).toBe(expected);
});

test.each([
  [undefined],
  [''],
  ['   '],
  ['soon'],
  ['s'],
  ['5 s s'],
  ['5 minutes'],
  ['58000ms'],
  [','],
  ['soon, later'],
  ['try in 5'],
  ['about 10 seconds'],
  ['NaN'],
])('retry-after: %j says nothing', (header) => {
  expect(retryAfterMs(header, NOW)).toBeUndefined();
});

test.each([
  ['Please retry in 1500 milliseconds.', 1_500],
  ['retry after 250ms', 250],
  ['1 millisecond', 50],
  ['wait 99.2 ms', 100],
  ['at most 120 requests in 60000 ms: retry in 1500 ms', 60_000],
  ['wait 99999999999 ms', 15 * 60_000],
  ['wait 15 seconds', undefined],
  ['wait 1,500 ms', undefined],
  ['ms', undefined],
])('a message that says %j: %s', (message, expected) => {
  expect(statedWaitMs(message)).toBe(expected);
});
