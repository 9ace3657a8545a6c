import { beforeEach, expect, test } from 'vitest';
import { EarlyRefreshes } from '../../src/tokens/early-refreshes.ts';

const HOUR_MS = 60 * 60_000;

let now: number;
let early: EarlyRefreshes;

beforeEach(() => {
  now = 7;
  early = new EarlyRefreshes(() => now);
});

/** Refreshes whenever that is allowed, so often, at a distance of so many milliseconds. @returns how many were */
function refreshes(tries: number, everyMs: number, lifeMs = HOUR_MS): number {
  let count = 0;
  for (let attempt = 0; attempt < tries; attempt++, now += everyMs) {
    if (early.isHeld('ins_1')) continue;
    early.note('ins_1', lifeMs);
    count++;
  }
  return count;
}

test('one at the end of every life is never held back', () => {
  expect(refreshes(1_000, 58 * 60_000)).toBe(1_000);
  expect(refreshes(1_000, 54_000, 60_000)).toBe(1_000);
});

test('a few that come early may, then one in half a life', () => {
  expect(refreshes(60, 1_000)).toBe(4);
  expect(early.isHeld('ins_2')).toBe(false);
  // Ten hours.
  expect(refreshes(60 * 10, 60_000)).toBeLessThanOrEqual(2 * 2 * 10);
  // What was held back is forgotten when all is well again.
  refreshes(5, HOUR_MS);
  expect(refreshes(60, 1_000)).toBeGreaterThan(1);
});

test('lives of half a second cost two refreshes in five seconds at the most, after a few', () => {
  expect(refreshes(240, 500, 520)).toBeLessThanOrEqual(4 + 2 * 24);
  now += 60_000;
  expect(refreshes(1_000, 9_000, 10_000)).toBe(1_000);
});
