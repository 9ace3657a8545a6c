import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { accessExpiry } from '../../src/auth/expiry.ts';
import { parseHttpDate } from '../../src/service/http-date.ts';
import { readRateHeaders } from '../../src/service/rate-headers.ts';
import { refusalOf } from '../../src/service/refusal.ts';
import { retryAfterMs } from '../../src/service/retry-timing.ts';
import { ServiceClock } from '../../src/service/service-clock.ts';

const AT = Date.UTC(2026, 10, 1, 8, 49, 37);
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
    expect(new Date(AT).getTimezoneOffset(), 'the zone counts in this process').toBe(offsetMinutes);
  });
  afterEach(() => {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  });

  test.each(FORMS)('the date %j is the same moment', (form) => {
    expect(parseHttpDate(form)).toBe(AT);
  });

  test.each(FORMS)('%j is that moment in every header that holds a date', (date) => {
    expect(retryAfterMs(date, AT - 7_000)).toBe(7_000);
    const later = new Date(AT + 7_000).toUTCString();
    const refused = {
      status: 503,
      headers: { date, 'retry-after': later },
      body: '',
      bytes: Buffer.alloc(0),
    };
    expect(refusalOf(refused, 0)).toMatchObject({ retryAfterMs: 7_000 });
    const clock = new ServiceClock(() => AT - 60_000);
    clock.observe(date);
    expect(clock.now()).toBe(AT + 500);
    const reset = String(AT / 1_000 + 20.5);
    const rate = { 'x-ratelimit-limit': '120', 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': reset };
    expect(readRateHeaders({ ...rate, date }, 0)?.endsInMs).toBe(20_500);
  });

  test('so is the end of an access token', () => {
    expect(accessExpiry('2026-11-01T08:49:37', AT - 30 * 60_000)).toBe(AT);
  });
});

test.each([
  ['26', 2026],
  ['75', 2075],
  ['76', 2076],
  ['77', 1977],
  ['99', 1999],
])('a year of two digits, %s, is never more than 50 years ahead', (digits, year) => {
  const date = `Sunday, 01-Nov-${digits} 08:49:37 GMT`;
  expect(parseHttpDate(date, AT)).toBe(Date.UTC(year, 10, 1, 8, 49, 37));
});

test('a leap second is the one before the next minute', () => {
  expect(parseHttpDate('Thu, 31 Dec 2026 23:59:60 GMT')).toBe(Date.UTC(2027, 0, 1));
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
  ['Sun, 00 Nov 2026 08:49:37 GMT'],
  ['Sun, 32 Nov 2026 08:49:37 GMT'],
  ['Sun, 01 Nov 2026 24:49:37 GMT'],
  ['Sun, 01 Nov 2026 08:60:37 GMT'],
  ['Sun, 01 Nov 2026 08:49:61 GMT'],
  ['Sun Nov  1 08:49:37 PM 2026 PM'],
])('%j is no date', (text) => {
  expect(parseHttpDate(text)).toBeNaN();
});

test('what is far too long is no date, whatever it ends with', () => {
  expect(parseHttpDate(`2026-11-01 00:00 ${'Z ('.repeat(100)}x`)).toBeNaN();
  expect(parseHttpDate(`${' '.repeat(200)}2026-11-01T08:49:37Z`)).toBe(AT);
});
