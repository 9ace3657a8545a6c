import { expect, test } from 'vitest';
import { checkProgress } from '../../src/sync/run-progress.ts';

const KEY = { instanceId: 'ins_1', resource: 'contacts' };

function check(pages: number, records: number, different: number): Promise<void> {
  return checkProgress({ deletions: { seenCount: async () => different } }, KEY, { pages, records });
}

test.each([
  ['all new', 64, 6_400, 6_400],
  ['half of them again', 1_024, 102_400, 51_200],
  ['a few, again and again', 64, 1_000, 1],
  ['a company without records', 64, 0, 0],
  ['hours of pages that are nearly empty, after deletions', 8_192, 10, 10],
  ['one record a page', 16_384, 16_384, 16_384],
])('a run gets on: %s', async (_what, pages, records, different) => {
  await expect(check(pages, records, different)).resolves.toBeUndefined();
});

test.each([
  ['every record three times', 1_024, 102_400, 34_133, 'repeat themselves'],
  ['two pages in a circle', 64, 6_400, 200, 'repeat themselves'],
  ['one record a page, the same two', 2_048, 2_048, 2, 'repeat themselves'],
  ['nothing', 16_384, 0, 0, 'does not get on'],
  ['next to nothing', 32_768, 30_000, 30_000, 'does not get on'],
])('a run does not: %s', async (_what, pages, records, different, reason) => {
  const failure = expect.objectContaining({ remedy: 'give_up', message: expect.stringContaining(reason) });
  await expect(check(pages, records, different)).rejects.toEqual(failure);
});

test('it looks seldom: when a run has twice the pages of the last time', async () => {
  const looked: number[] = [];
  let pages = 0;
  const deletions = {
    seenCount: async () => {
      looked.push(pages);
      return pages;
    },
  };
  while (pages++ < 5_000) await checkProgress({ deletions }, KEY, { pages, records: pages });
  expect(looked).toEqual([64, 128, 256, 512, 1_024, 2_048, 4_096]);
});
