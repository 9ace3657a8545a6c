import { expect, test } from 'vitest';
import { type Counted, idealTimeMs, timeOfPage, windowsOf } from './journal-counts.ts';

function row(at: number, status = 200, more: Partial<Counted> = {}): Counted {
  return {
    at,
    status,
    path: '/contacts',
    company_id: 'cmp_1',
    application: 'app',
    duration_ms: 40,
    ...more,
  };
}

test('a window begins with the first request that counts, and the next one after its whole length', () => {
  const rows = [row(50, 429), row(100), row(150), row(160, 429), row(6_099), row(6_100), row(20_000, 401)];
  expect(windowsOf(rows, 6_000)).toEqual([
    { start: 100, counted: 3, refused: 1 },
    { start: 6_100, counted: 1, refused: 0 },
  ]);
});

test('what was neither refused nor rejected counts, whatever its answer', () => {
  const rows = [row(0), row(1, 404), row(2, 500), row(3, 429), row(4, 401), row(5, 0)];
  expect(windowsOf(rows, 6_000)).toEqual([{ start: 0, counted: 4, refused: 1 }]);
});

test('the ideal time: what is left of the first window, then whole windows at the pace of the bare loop', () => {
  const given = { limit: 120, firstLeft: 119, firstEndsInMs: 4_000, windowMs: 6_000, perSecond: 50 };
  expect(idealTimeMs(100, given)).toBe(2_000);
  expect(idealTimeMs(119, given)).toBe(2_380);
  expect(idealTimeMs(120, given)).toBe(4_020);
  expect(idealTimeMs(300, given)).toBe(4_000 + 6_000 + 61 * 20);
});

test('a page is there when its answer is, and only those that were served count', () => {
  const rows = [row(1_000, 200, { duration_ms: 900 }), row(1_100), row(1_200, 429), row(1_300)];
  expect(timeOfPage(rows, 1, 1_000)).toBe(140);
  expect(timeOfPage(rows, 3, 1_000)).toBe(900);
  expect(timeOfPage(rows, 4, 1_000)).toBeUndefined();
});
