import { afterEach, describe, expect, test, vi } from 'vitest';
import { accessExpiry } from '../../src/auth/expiry.ts';
import {
  parseHttpDate,
  readLimit,
  readRateHeaders,
  retryAfterMs,
  ServiceClock,
  statedWaitMs,
} from '../../src/service/headers.ts';

const DATE = Date.UTC(2026, 10, 1, 8, 49, 37);
const FORMS = [
  'Sun, 01 Nov 2026 08:49:37 GMT',
  'Sunday, 01-Nov-26 08:49:37 GMT',
  ' Sun Nov  1 08:49:37 2026 ',
  '2026-11-01T08:49:37Z',
  '2026-11-01T08:49:37',
  '2026-11-01 08:49:37',
  '2026-11-01T17:49:37+09:00',
  '2026-11-01T03:49:37.000-0500',
  'Sun, 1 Nov 2026 03:49:37 EST',
  '1 Nov 2026 08:49:37',
  'Sun Nov 01 2026 17:49:37 GMT+0900 (Japan Standard Time)',
];

describe.each([
  ['UTC', 0],
  ['Asia/Tokyo', -540],
  ['America/New_York', 300],
])('on a machine in the zone %s', (zone, offsetMinutes) => {
  afterEach(() => void vi.unstubAllEnvs());

  test('every form of a date is the same moment', () => {
    vi.stubEnv('TZ', zone);
    expect(new Date(DATE).getTimezoneOffset()).toBe(offsetMinutes);
    for (const form of FORMS) expect(parseHttpDate(form), form).toBe(DATE);
    expect(accessExpiry('2026-11-01T08:49:37', DATE - 30 * 60_000)).toBe(DATE);
  });
});

test.each([
  undefined,
  null,
  '',
  'yesterday',
  'try in 5',
  '2026',
  '08:49:37',
  'Sun, 01 Foo 2026 08:49:37 GMT',
  'Sun, 32 Nov 2026 08:49:37 GMT',
  'Sun, 01 Nov 2026 24:49:37 GMT',
  'Sun Nov  1 08:49:37 PM 2026 PM',
  `2026-11-01 00:00 ${'Z ('.repeat(100)}x`,
])('%j is no date', (text) => {
  expect(parseHttpDate(text)).toBeNaN();
});

const CLOCK = Date.UTC(2026, 2, 1, 12, 0, 0, 400);
const dateAt = (ms: number) => new Date(ms).toUTCString();

test('the service’s time is our own until an answer has a Date', () => {
  const clock = new ServiceClock(() => CLOCK);
  for (const none of [undefined, '', 'yesterday']) clock.observe(none);
  expect(clock.now()).toBe(CLOCK);
});

test.each([-10 * 60_000, 10 * 60_000, 365 * 24 * 3_600_000])(
  'the clock follows a service that is %d ms ahead',
  (ahead) => {
    let local = CLOCK;
    const clock = new ServiceClock(() => local);
    clock.observe(dateAt(CLOCK + ahead));
    local += 5_000;
    expect(Math.abs(clock.now() - (local + ahead))).toBeLessThan(1_000);
  },
);

test('the clock stays while answers agree with it to the second', () => {
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

const read = (headers: Record<string, string | undefined>) => readRateHeaders({ ...COMPLETE, ...headers }, 0);

test.each([
  ['a reset with a fraction is exact', AT_S + 12.345, 12_345],
  ['a part of a millisecond is rounded up', AT_S + 12.0005, 12_001],
  ['a whole reset may be cut, so a second is added', AT_S + 12, 13_000],
  ['a reset before the answer means a whole window', AT_S - 12.5, 60_000],
  ['a reset now means a second', AT_S + 0, 1_000],
  ['a reset far away means a window and a second', AT_S + 86_400.5, 61_000],
])('the end of the window: %s', (_what, reset, expected) => {
  expect(read({ 'x-ratelimit-reset': String(reset) })?.endsInMs).toBe(expected);
});

test.each([
  ['whole seconds', '12', 12_000, 13_000],
  ['a fraction, which is exact', '12.3', 12_300, 12_300],
  ['nothing', '0', 0, 1_000],
  ['more than a window', '9999999', 9_999_999_000, 61_000],
])('a reset may be the seconds that are left: %s', (_what, reset, resetAfterMs, endsInMs) => {
  const rate = readRateHeaders({ ...COMPLETE, 'x-ratelimit-reset': reset }, AT + 700);
  expect(rate).toMatchObject({ resetMs: AT + 700 + resetAfterMs, endsInMs });
});

test('seconds that are left name one window, wherever they were cut', () => {
  const end = AT + 60_000;
  const resets = [0, 400, 1_399, 30_001, 58_900].flatMap((at) =>
    [Math.floor, Math.ceil].map((cut) => {
      const left = String(cut((end - AT - at) / 1_000));
      return readRateHeaders({ ...COMPLETE, 'x-ratelimit-reset': left }, AT + at)?.resetMs ?? 0;
    }),
  );
  for (const reset of resets) expect(Math.abs(reset - end)).toBeLessThanOrEqual(1_000);
});

test('the wait is never too short, wherever Date and reset were cut', () => {
  for (let cut = 0; cut < 1_000; cut += 37) {
    for (const left of [1, 400, 999, 1_000, 12_345]) {
      const end = (AT + cut + left) / 1_000;
      for (const reset of [end, Math.floor(end)]) {
        expect(read({ 'x-ratelimit-reset': String(reset) })?.endsInMs).toBeGreaterThanOrEqual(left);
      }
    }
  }
});

test('an answer’s headers say how much of the limit is left', () => {
  const facts = { limit: 120, remaining: 77, resetMs: AT + 12_345, endsInMs: 12_345, burstRemaining: 59 };
  expect(read({})).toEqual(facts);
});

test.each([undefined, 'yesterday-ish'])('with a Date of %j our own reading counts', (date) => {
  expect(readRateHeaders({ ...COMPLETE, date }, AT + 345)?.endsInMs).toBe(12_000);
});

test.each([undefined, '-1', 'lots'])('a burst of %j is left out', (burst) => {
  const headers = { 'x-ratelimit-burst-remaining': burst };
  expect(read(headers)).toMatchObject({ remaining: 77, burstRemaining: undefined });
});

test.each(['-1', '-40', '-0.5', '0.9'])('a remaining of %s means that nothing is left', (remaining) => {
  const headers = { 'x-ratelimit-limit': '120.9', 'x-ratelimit-remaining': remaining };
  expect(read(headers)).toMatchObject({ limit: 120, remaining: 0, endsInMs: 12_345 });
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
])('a limit of %j alone is %j', (limit, expected) => {
  expect(readLimit({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': 'many' })).toBe(expected);
});

test.each([
  ...['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].flatMap((name) =>
    [undefined, ' ', 'many', 'NaN', '-Infinity', '1e308'].map((value) => [name, value] as const),
  ),
  ...['-1', '0', '0.9'].map((limit) => ['x-ratelimit-limit', limit] as const),
  ['x-ratelimit-reset', '-1'] as const,
])('with %s of %j an answer says nothing about the limit', (name, value) => {
  expect(read({ [name]: value })).toBeUndefined();
});

const retryAfter = (header: string | undefined) => retryAfterMs({ 'retry-after': header }, AT);

/** The budget would forget a longer wait before its end. */
const LONGEST_MS = 15 * 60_000;

test.each([
  ['whole seconds', '3', 3_000],
  ['decimal seconds', '0.25', 250],
  ['a part of a millisecond, rounded up', '1.0001', 1_001],
  ['spaces around', ' 2 ', 2_000],
  ['an HTTP date', 'Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['another form of a date', 'March 1, 2026 12:00:30 GMT', 30_000],
  ['zero, which is never a tight loop', '0', 50],
  ['a negative number', '-7', 50],
  ['a date that has passed', 'Sun, 01 Mar 2026 11:59:00 GMT', 50],
  ['more than the app accepts', '86400', LONGEST_MS],
  ['endless', 'Infinity', LONGEST_MS],
  ['a date far away', 'Mon, 01 Mar 2027 12:00:00 GMT', LONGEST_MS],
  ['a unit', '58s', 58_000],
  ['a unit behind a space', '5 sec', 5_000],
  ['a whole unit', '0.5 Seconds', 500],
  ['several, the longest last', '1,3, 58s', 58_000],
  ['several, the longest first', '58, 0', 58_000],
  ['a number beside nothing', ', 58,', 58_000],
  ['a number beside words', 'soon, 58', 58_000],
  ['a number and a date', '58, Sun, 01 Mar 2026 12:01:30 GMT', 90_000],
  ['a date and a number', 'Sun, 01 Mar 2026 12:00:30 GMT, 58', 58_000],
  ['two dates', 'Sun, 01 Mar 2026 12:00:30 GMT, Sunday, 01-Mar-26 12:00:50 GMT', 50_000],
  ['quotes', '"8"', 8_000],
  ['epoch seconds', String(AT_S + 8.25), 8_250],
  ['epoch milliseconds', String(AT + 8_000), 8_000],
  ['epoch seconds that have passed', String(AT_S - 8), 50],
  ['a number of long ago, which is a delay', '1000000000', LONGEST_MS],
  ['a number of another century, which is a delay', '4102444800', LONGEST_MS],
])('retry-after: %s', (_what, header, expected) => {
  expect(retryAfter(header)).toBe(expected);
});

test.each([undefined, '', '   ', 'soon', 's', '5 s s', '5 minutes', '58000ms', ',', 'try in 5', 'NaN'])(
  'retry-after: %j says nothing',
  (header) => {
    expect(retryAfter(header)).toBeUndefined();
  },
);

test('retry-after is read against the Date of its answer', () => {
  const headers = { date: 'Sun, 01 Mar 2026 15:00:00 GMT', 'retry-after': 'Sun, 01 Mar 2026 15:00:07 GMT' };
  expect(retryAfterMs(headers, AT)).toBe(7_000);
});

test.each([
  ['Please retry in 1500 milliseconds.', 1_500],
  ['retry after 250ms', 250],
  ['1 millisecond', 50],
  ['wait 99.2 ms', 100],
  ['at most 120 requests in 60000 ms: retry in 1500 ms', 60_000],
  ['wait 99999999999 ms', LONGEST_MS],
  ['wait 15 seconds', undefined],
  ['wait 1,500 ms', undefined],
  ['ms', undefined],
])('the message %j states %s', (message, expected) => {
  expect(statedWaitMs(message)).toBe(expected);
});
