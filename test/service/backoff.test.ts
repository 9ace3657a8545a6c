import { expect, test } from 'vitest';
import { backoffMs } from '../../src/service/backoff.ts';

test.each([
  [1, 500],
  [2, 1_000],
  [7, 32_000],
  [8, 60_000],
  [10_000, 60_000],
])('the pause after try %d lies between half of %d ms and all of it', (attempt, full) => {
  expect(backoffMs(attempt, 0)).toBe(full / 2);
  expect(backoffMs(attempt, 0.5)).toBe(full * 0.75);
  expect(backoffMs(attempt, 1 - 2 ** -53)).toBe(full);
});
