import { expect, test } from 'vitest';
import { type Counted, measureTrack } from './measure.ts';

const SETTING = { windowMs: 6_000, windows: 2, limit: 120, loopPerSecond: 50, othersId: 'other' };
const OPENER = { application: 'other', path: '/me' };

function rows(from: number, count: number, more: Partial<Counted> = {}): Counted[] {
  const row = { path: '/contacts', status: 200, company_id: 'a', application: 'app' };
  return Array.from({ length: count }, (_, at) => ({ ...row, at: from + 20 * at, ...more }));
}

test('only complete windows count: neither the first one nor the time after the last', () => {
  const journal = [
    ...rows(0, 1, OPENER),
    ...rows(2_000, 119),
    ...rows(6_000, 120),
    ...rows(12_000, 60),
    ...rows(18_000, 120),
  ];
  expect(measureTrack(journal, 'a', SETTING)).toMatchObject({ share: 0.75, pages: 180, refused: 0 });
});

test('the share leaves out what another application was served, and its refusals', () => {
  const journal = [
    ...rows(0, 1, OPENER),
    ...rows(6_000, 100),
    ...rows(6_010, 20, OPENER),
    ...rows(8_000, 3, { ...OPENER, status: 429 }),
    ...rows(8_500, 4, { status: 429 }),
    ...rows(12_000, 110),
    ...rows(12_000, 50, { company_id: 'b' }),
  ];
  const line = measureTrack(journal, 'a', SETTING);
  expect(line).toMatchObject({ pages: 210, refused: 4, others: { served: 20, refused: 3 } });
  expect(line.share).toBeCloseTo(210 / 220);
});

test('where latency permits less than the limit, the bare loop says how much', () => {
  const setting = { ...SETTING, loopPerSecond: 10 };
  expect(measureTrack([...rows(0, 1, OPENER), ...rows(6_000, 60)], 'a', setting).share).toBe(0.5);
});
