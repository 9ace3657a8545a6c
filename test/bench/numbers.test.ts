import { expect, test } from 'vitest';
import { median, quantile } from './support/numbers.ts';

test('a quantile is the value of the nearest rank, in whatever order they come', () => {
  const values = [5, 1, 4, 2, 3, 10, 9, 8, 7, 6];
  expect(quantile(values, 0)).toBe(1);
  expect(quantile(values, 0.5)).toBe(5);
  expect(quantile(values, 0.91)).toBe(10);
  expect(quantile(values, 1)).toBe(10);
  expect(values[0]).toBe(5);
});

test('the median is the middle one, and of nothing there is none', () => {
  expect(median([30, 10, 20])).toBe(20);
  expect(() => median([])).toThrow(RangeError);
});
