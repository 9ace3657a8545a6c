import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { accessExpiry } from '../../src/auth/expiry.ts';
import {
  parseHttpDate,
  readRateHeaders,
  readToldLimit,
  retryAfterMs,
  ServiceClock,
  statedWaitMs,
} from '../../src/service/headers.ts';

const DATE = Date.UTC(2026, 10, 1, 8, 49, 37);
const FORMS = [
  'Sun, 01 Nov 2026 08:49:37 GMT',
  'Sunday, 01-Nov-26 08:49:37 GMT',
  'Sun Nov  1 08:49:37 2026',
  ' Sun Nov  1 08:49:37 2026 ',
  '2026-11-01T08:49:37Z',
  '2026-11-01T08:49:37',
  '2026-11-01 08:49:37',
  '2026-11-01T17:49:37+09:00',
  '2026-11-01T03:49:37.000-0500',
  'Sun, 1 Nov 2026 08:49:37 +0000',
  'Sun, 1 Nov 2026 03:49:37 EST',
  '1 Nov 2026 08:49:37',
  'Sun Nov 01 2026 17:49:37 GMT+0900 (Japan Standard Time)',
];

describe.each([
  ['UTC', 0],
  ['Asia/Tokyo', -540],
  ['America/New_York', 300],
])('where the clock on the wall is that of %s', (zone, offsetMinutes) => {
  const before = process.env.TZ;
  beforeEach(() => {
    process.env.TZ = zone;
    expect(new Date(DATE).getTimezoneOffset(), 'the zone counts in this process').toBe(offsetMinutes);
  });
  afterEach(() => {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  });

  test.each(FORMS)('the date %j is the same moment', (form) => {
    expect(parseHttpDate(form)).toBe(DATE);
  });

  test('so is the end of an access token', () => {
    expect(accessExpiry('2026-11-01T08:49:37', DATE - 30 * 60_000)).toBe(DATE);
  });
});

test.each([
  [undefined],
  [null],
  [''],
  ['yesterday'],
  ['try in 5'],
  ['2026'],
  ['08:49:37'],
  ['Sun, 01 Foo 2026 08:49:37 GMT'],
  ['Sun, 32 Nov 2026 08:49:37 GMT'],
  ['Sun, 01 Nov 2026 24:49:37 GMT'],
  ['Sun, 01 Nov 2026 08:60:37 GMT'],
  ['Sun Nov  1 08:49:37 PM 2026 PM'],
])('%j is no date', (text) => {
  expect(parseHttpDate(text)).toBeNaN();
});

test('what is far too long is no date, whatever it ends with', () => {
  expect(parseHttpDate(`2026-11-01 00:00 ${'Z ('.repeat(100)}x`)).toBeNaN();
  expect(parseHttpDate(`${' '.repeat(200)}2026-11-01T08:49:37Z`)).toBe(DATE);
});

const CLOCK = Date.UTC(2026, 2, 1, 12, 0, 0, 400);
const dateAt = (ms: number) => new Date(ms).toUTCString();

test('the service’s time is our own clock until an answer has told the time', () => {
  const clock = new ServiceClock(() => CLOCK);
  expect(clock.now()).toBe(CLOCK);
  for (const none of [undefined, '', 'yesterday']) clock.observe(none);
  expect(clock.now()).toBe(CLOCK);
});

test.each([-10 * 60_000, 10 * 60_000, 365 * 24 * 3_600_000])(
  'the service’s time follows a service that is %d ms ahead',
  (ahead) => {
    let local = CLOCK;
    const clock = new ServiceClock(() => local);
    clock.observe(dateAt(CLOCK + ahead));
    expect(Math.abs(clock.now() - (CLOCK + ahead))).toBeLessThan(1_000);
    local += 5_000;
    expect(Math.abs(clock.now() - (CLOCK + ahead + 5_000))).toBeLessThan(1_000);
  },
);

test('the service’s time stays while answers agree with it, to the second', () => {
  const clock = new ServiceClock(() => CLOCK);
  clock.observe(dateAt(CLOCK - 400));
  expect(clock.now()).toBe(CLOCK);
});

/** A whole second of the service's clock. */
const AT = Date.UTC(2026, 2, 1, 12, 0, 0);
const AT_S = AT / 1_000;

const COMPLETE = {
  date: new Date(AT).toUTCString(),
  'x-ratelimit-limit': '120',
  'x-ratelimit-remaining': '77',
  'x-ratelimit-reset': String(AT_S + 12.345),
  'x-ratelimit-burst-limit': '60',
  'x-ratelimit-burst-remaining': '59',
};

const endsInMs = (reset: number, at: number) =>
  readRateHeaders({ ...COMPLETE, date: new Date(at).toUTCString(), 'x-ratelimit-reset': String(reset) }, 0)
    ?.endsInMs;

test.each([
  ['a reset with a fraction is taken as it is', AT_S + 12.345, 12_345],
  ['parts of a millisecond are rounded up', AT_S + 12.0005, 12_001],
  ['a whole reset may have been cut: a second more', AT_S + 12, 13_000],
  [
    'a reset that had passed before the answer was sent: the clocks do not agree, a window at most',
    AT_S - 12.5,
    60_000,
  ],
  ['a reset that is now', AT_S + 0, 1_000],
  ['never more than a window and a second', AT_S + 86_400.5, 61_000],
  ['likewise of a whole one', AT_S + 3_600, 61_000],
])('the end of the window: %s', (_what, reset, expected) => {
  expect(endsInMs(reset, AT)).toBe(expected);
});

test('the wait is never too short, wherever in its second the Date was cut, whole resets or not', () => {
  for (let cut = 0; cut < 1_000; cut += 37) {
    const sentAt = AT + cut;
    for (const left of [1, 400, 999, 1_000, 12_345]) {
      const end = sentAt + left;
      expect(endsInMs(end / 1_000, AT)).toBeGreaterThanOrEqual(left);
      expect(endsInMs(Math.floor(end / 1_000), AT)).toBeGreaterThanOrEqual(left);
    }
  }
});

test('reads what an answer says about the limit', () => {
  expect(readRateHeaders(COMPLETE, 0)).toEqual({
    limit: 120,
    remaining: 77,
    resetMs: AT + 12_345,
    endsInMs: 12_345,
    burstRemaining: 59,
  });
});

test.each([
  ['absent', undefined],
  ['nonsense', 'yesterday-ish'],
])('a Date that is %s: our own reading of the time stands in', (_what, date) => {
  expect(readRateHeaders({ ...COMPLETE, date }, AT + 345)?.endsInMs).toBe(12_000);
});

test('fractions of requests are not requests', () => {
  const read = readRateHeaders(
    { ...COMPLETE, 'x-ratelimit-limit': '120.9', 'x-ratelimit-remaining': '0.9' },
    AT,
  );
  expect(read).toMatchObject({ limit: 120, remaining: 0 });
});

test.each([[undefined], ['-1'], ['lots']])('a burst of %j is left out, the rest is read', (burst) => {
  const read = readRateHeaders({ ...COMPLETE, 'x-ratelimit-burst-remaining': burst }, AT);
  expect(read).toMatchObject({ remaining: 77, burstRemaining: undefined });
});

test.each(['-1', '-40', '-0.5'])('a rest of %s, below zero: nothing is left', (remaining) => {
  expect(readRateHeaders({ ...COMPLETE, 'x-ratelimit-remaining': remaining }, AT)).toMatchObject({
    limit: 120,
    remaining: 0,
    endsInMs: 12_345,
  });
});

test.each([
  ['50', 50],
  ['50.9', 50],
  ['50, 50;w=60', 50],
  ['50;w=60', 50],
  ['50 per minute', undefined],
  ['0', undefined],
  ['-1', undefined],
  ['many', undefined],
  [undefined, undefined],
])('a limit of %j, alone, is one of %j', (limit, expected) => {
  expect(readToldLimit({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': 'many' })).toBe(expected);
});

test.each([
  ...['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].flatMap((name) =>
    [undefined, '', ' ', 'many', 'NaN', 'Infinity', '-Infinity', '1e308'].map(
      (value) => [name, value] as const,
    ),
  ),
  ...['-1', '0', '0.9'].map((limit) => ['x-ratelimit-limit', limit] as const),
  ['x-ratelimit-reset', '-1'] as const,
])('%s of %j: the answer says nothing about the limit', (name, value) => {
  expect(readRateHeaders({ ...COMPLETE, [name]: value }, AT)).toBeUndefined();
});

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const retryAfter = (header: string | undefined) => retryAfterMs({ 'retry-after': header }, NOW);

/** No longer wait is believed: the budget would forget it before its end. */
const QUARTER_OF_AN_HOUR_MS = 15 * 60_000;

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
  ['quotes', '"8"', 8_000],
  ['a duration of ISO 8601', 'PT8S', 8_000],
  ['a longer duration', 'PT1M1.5S', 61_500],
  ['epoch seconds', String(NOW / 1_000 + 8), 8_000],
  ['epoch seconds with a fraction', String(NOW / 1_000 + 8.25), 8_250],
  ['epoch milliseconds', String(NOW + 8_000), 8_000],
  ['epoch seconds that have passed', String(NOW / 1_000 - 8), 50],
  ['a date in a form of its own', 'March 1, 2026 12:00:30 GMT', 30_000],
])('retry-after: %s', (_what, header, expected) => {
  expect(retryAfter(header)).toBe(expected);
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
  ['P'],
  ['PT'],
  ['P8'],
  [','],
  ['soon, later'],
  ['try in 5'],
  ['about 10 seconds'],
  ['NaN'],
])('retry-after: %j says nothing', (header) => {
  expect(retryAfter(header)).toBeUndefined();
});

test('retry-after is read against the service’s own Date', () => {
  const headers = { date: 'Sun, 01 Mar 2026 15:00:00 GMT', 'retry-after': 'Sun, 01 Mar 2026 15:00:07 GMT' };
  expect(retryAfterMs(headers, NOW)).toBe(7_000);
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
