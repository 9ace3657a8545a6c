import { expect, test } from 'vitest';
import { backoffMs } from '../../src/service/backoff.ts';

const ALMOST_ONE = 1 - 2 ** -53;
test('the pause lies between half of a doubling step and all of it', () => {
  for (let attempt = 1; attempt <= 7; attempt++) {
    const full = 500 * 2 ** (attempt - 1);
    expect(backoffMs(attempt, 0)).toBe(full / 2);
    expect(backoffMs(attempt, 0.5)).toBe(full * 0.75);
    expect(backoffMs(attempt, ALMOST_ONE)).toBe(full);
  }
});

test.each([8, 20, 1_000, 10_000])('the pause does not grow beyond its cap (attempt %d)', (attempt) => {
  expect(backoffMs(attempt, ALMOST_ONE)).toBe(60_000);
  expect(backoffMs(attempt, 0)).toBe(60_000 / 2);
});
