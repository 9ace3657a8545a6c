import { expect, test } from 'vitest';
import { readRateHeaders, readToldLimit, windowEndsInMs } from '../../src/service/rate-headers.ts';

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
  expect(windowEndsInMs(reset, AT)).toBe(expected);
});

test('the wait is never too short, wherever in its second the Date was cut, whole resets or not', () => {
  for (let cut = 0; cut < 1_000; cut += 37) {
    const sentAt = AT + cut;
    for (const left of [1, 400, 999, 1_000, 12_345]) {
      const end = sentAt + left;
      expect(windowEndsInMs(end / 1_000, AT)).toBeGreaterThanOrEqual(left);
      expect(windowEndsInMs(Math.floor(end / 1_000), AT)).toBeGreaterThanOrEqual(left);
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
  ['0', undefined],
  ['-1', undefined],
  ['many', undefined],
  [undefined, undefined],
])('a limit of %j, alone, is one of %j', (limit, expected) => {
  expect(readToldLimit({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': 'many' })).toBe(expected);
});

test.each([
  ...['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].flatMap((name) =>
    [undefined, '', ' ', 'many', 'NaN', 'Infinity', '-Infinity', '1e308', '-1e308'].map(
      (value) => [name, value] as const,
    ),
  ),
  ...['-1', '0', '0.9'].map((limit) => ['x-ratelimit-limit', limit] as const),
  ['x-ratelimit-reset', '-1'] as const,
])('%s of %j: the answer says nothing about the limit', (name, value) => {
  expect(readRateHeaders({ ...COMPLETE, [name]: value }, AT)).toBeUndefined();
});
