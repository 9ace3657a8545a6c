import { expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';

function monthsLater(start: string, months: number): string {
  return new Date(addMonths(Date.parse(start), months)).toISOString();
}

test.each([
  ['an ordinary day', '2025-01-15T13:14:15.678Z', 6, '2025-07-15T13:14:15.678Z'],
  ['over the end of the year', '2025-09-10T00:00:00.000Z', 6, '2026-03-10T00:00:00.000Z'],
  ['from the last of a month to a shorter one', '2025-08-31T23:59:59.999Z', 6, '2026-02-28T23:59:59.999Z'],
  ['to February of a leap year', '2027-08-31T12:00:00.000Z', 6, '2028-02-29T12:00:00.000Z'],
  ['from the 29th to February of a common year', '2026-08-29T12:00:00.000Z', 6, '2027-02-28T12:00:00.000Z'],
  ['from the end of a short month', '2024-02-29T06:00:00.000Z', 6, '2024-08-29T06:00:00.000Z'],
  ['from the 31st to a month of 30 days', '2025-03-31T00:00:00.000Z', 6, '2025-09-30T00:00:00.000Z'],
  ['from December', '2025-12-31T00:00:00.000Z', 2, '2026-02-28T00:00:00.000Z'],
  ['no months at all', '2025-05-31T08:00:00.000Z', 0, '2025-05-31T08:00:00.000Z'],
])('months in UTC: %s', (_what, start, months, end) => {
  expect(monthsLater(start, months)).toBe(end);
});

test('six months are never shorter than the 180 days that the app counts with', () => {
  const dayMs = 24 * 60 * 60_000;
  const days = Array.from({ length: 4 * 366 }, (_, day) => Date.UTC(2025, 0, 1) + day * dayMs);
  const shortest = Math.min(...days.map((day) => addMonths(day, 6) - day));
  expect(shortest / dayMs).toBe(181);
});
