import { expect, it } from 'vitest';
import type { ListStatusJson } from '../../../src/sync/status-types.ts';
import { paceText } from '../../../src/web/view/pace.ts';
import { at, instanceStatus, listStatus, NOW } from '../status-fixtures.ts';

const FIRST = { state: 'running', full_at: null, started_at: at(-60_000) } as const;
const LATER = { state: 'running', stored: 10_000, started_at: at(-60_000) } as const;

it.each<[string, Partial<ListStatusJson>[], string]>([
  // 22,000 records of a burst, of which the limit allows 200 a second.
  [
    'a first copy goes as fast as the limit allows',
    [{ ...FIRST, records: 22_000, pages: 220 }],
    'About 200 records a second.',
  ],
  [
    'two share it',
    Array(2).fill({ ...FIRST, records: 9_000, pages: 90 }),
    'About 200 records a second for both lists.',
  ],
  [
    'three share it',
    Array(3).fill({ ...FIRST, records: 9_000, pages: 90 }),
    'About 200 records a second for 3 lists.',
  ],
  ['a slow service sets the pace', [{ ...FIRST, records: 6_000, pages: 60 }], 'About 100 records a second.'],
  ['one record a page', [{ ...FIRST, records: 500, pages: 500 }], 'About 2 records a second.'],
  [
    'what was interrupted says nothing',
    [{ ...LATER, records: 3_000, pages: 30, started_at: at(-36_000_000) }],
    '',
  ],
  ['nothing is left', [{ ...LATER, records: 10_000, pages: 100 }], 'Nearly done.'],
  [
    'the burst says nothing yet',
    [{ ...FIRST, records: 6_000, pages: 60, started_at: at(-2_000) }],
    'About 200 records a second.',
  ],
  ['nothing was read yet', [{ ...FIRST, records: 0, pages: 0 }], ''],
  ['a known size gives a time', [{ ...LATER, records: 4_000, pages: 40 }], 'About 2 min left.'],
  [
    'of all lists',
    Array(2).fill({ ...LATER, records: 6_000, pages: 60, stored: 66_000 }),
    'About 10 min left.',
  ],
  [
    'a list beyond its size has none',
    [{ ...LATER, records: 12_000, pages: 120 }],
    'About 200 records a second.',
  ],
])('%s', (_what, lists, text) => {
  const open = lists.map((list) => listStatus(list));
  expect(paceText(instanceStatus().budget, open, NOW)).toBe(text);
});

it('without a known limit, what was measured counts', () => {
  const budget = { ...instanceStatus().budget, limit: null };
  const open = [listStatus({ ...FIRST, records: 22_000, pages: 220 })];
  expect(paceText(budget, open, NOW)).toBe('About 370 records a second.');
  expect(paceText(budget, [listStatus({ ...FIRST, records: 5, pages: 1, started_at: at(-1) })], NOW)).toBe(
    '',
  );
});
