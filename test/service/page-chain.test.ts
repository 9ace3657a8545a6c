import { expect, test } from 'vitest';
import { ServiceError } from '../../src/service/errors.ts';
import { MOST_PAGES, PageChain } from '../../src/service/page-chain.ts';

/** Follows a chain of numbered pages to its end. */
function walk(lead: (page: number) => number | null, most = Number.POSITIVE_INFINITY) {
  const chain = new PageChain();
  let page: number | null = 0;
  for (let pages = 0; page !== null; pages++) {
    if (pages === most) return { pages };
    const next: number | null = lead(page);
    try {
      chain.follow(`/${page}`, next === null ? null : `/${next}`);
    } catch (error) {
      if (error instanceof ServiceError) return { pages, error };
      throw error;
    }
    page = next;
  }
  return { pages: 0 };
}

test('a chain that ends is let through, however long', () => {
  expect(walk((page) => (page === 5_000 ? null : page + 1))).toEqual({ pages: 0 });
});

test('a page that names itself may be better when it is asked for again', () => {
  const { pages, error } = walk((page) => (page === 6 ? 6 : page + 1));
  expect(pages).toBe(6);
  expect(error).toMatchObject({ remedy: 'wait' });
});

test.each([
  [0, 2],
  [0, 50],
  [1, 2],
  [3, 7],
  [100, 3],
  [1_000, 64],
  [7, 1_025],
])('behind %d pages, a circle of %d is noticed before long', (before, length) => {
  const lead = (page: number) => (page === before + length - 1 ? before : page + 1);
  const { pages, error } = walk(lead, 100_000);
  expect(error).toMatchObject({ remedy: 'give_up' });
  expect(error?.message).toContain('circle');
  expect(pages).toBeGreaterThanOrEqual(before + length - 1);
  expect(pages).toBeLessThanOrEqual(2 * before + 3 * length);
});

test('a chain without an end is followed to the last page that any company may have', () => {
  const { pages, error } = walk((page) => page + 1);
  expect(pages).toBe(MOST_PAGES - 1);
  expect(error).toMatchObject({ remedy: 'give_up' });
  expect(error?.message).toContain(`${MOST_PAGES} pages`);
});
