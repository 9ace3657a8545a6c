import { expect, test } from 'vitest';
import { shareOfLimit, windowsOf } from './support/window-shares.ts';

test('a window begins with the first request after the one before has ended', () => {
  expect(windowsOf([0, 40, 99, 130, 229, 230], 100)).toEqual([
    { startedAt: 0, requests: 3 },
    { startedAt: 130, requests: 2 },
    { startedAt: 230, requests: 1 },
  ]);
});

test('a share is of all the time from the first window to the last, which does not count itself', () => {
  const windows = windowsOf([0, 1, 100, 101, 250], 100);
  expect(shareOfLimit(windows, 2, 100)).toBeCloseTo(4 / 5);
  expect(shareOfLimit(windows.slice(0, 2), 2, 100)).toBe(1);
});

test('one window tells no share', () => {
  expect(shareOfLimit(windowsOf([0, 1, 2], 100), 2, 100)).toBeUndefined();
});
