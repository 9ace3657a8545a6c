import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { deletions } = store;

  /** A copy of so many records, and a run that has seen the first of them. */
  async function mostGone(count: number, seen = 1) {
    const first = await store.copy(documentsOf(count));
    const claim = await store.claimRun(first);
    await store.write(claim, documentsOf(seen));
    return claim;
  }
  const portionOf = (claim: TestClaim) => ({ beforeRun: claim.run, counter: claim.run, claim });

  test('deletions come in portions, and pages are written in between', async () => {
    const claim = await mostGone(1_200, 100);
    const other = await store.claimRun();
    const portions: number[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const marked = await deletions.markPortion(claim.list, portionOf(claim), after, NOW);
      if (marked === 'lost') expect.unreachable();
      portions.push(marked.marked);
      after = marked.next;
      expect(await store.write(other, [], { next: PAGE_2 })).toBeDefined();
    }
    expect(portions).toEqual([500, 500, 100]);
    expect(await store.list(claim)).toMatchObject({ stored: 100, run: { deleted: 1_100 } });
  });

  test('records that have been missing longest come first', async () => {
    const first = await store.copy(documentsOf(3));
    const second = await store.copy(documentsOf(2), first);
    const third = await store.copy(documentsOf(1), first);
    const find = async (beforeRun: number, most: number) => {
      const { count, oldest } = await deletions.findUnseen(first.list, beforeRun, most);
      return [count, ...oldest.map(({ externalId }) => externalId)];
    };
    expect(await find(third.run, 9)).toEqual([2, '2', '1']);
    expect(await find(third.run, 1)).toEqual([2, '2']);
    expect(await find(second.run, 9)).toEqual([1, '2']);
    const seen = [first, second, third].map(({ run }) => deletions.findSeen(first.list, run));
    expect(await Promise.all(seen)).toEqual(['2', '1', '0']);
    expect(await deletions.findSeen(first.list, third.run + 1)).toBeUndefined();
  });

  test('a record that was seen while the service was asked for it stays', async () => {
    const claim = await mostGone(4);
    const { oldest } = await deletions.findUnseen(claim.list, claim.run, 9);
    expect(oldest).toHaveLength(3);
    await store.write(claim, ['{"id":"2"}'], { from: null });
    const [asked] = [oldest.filter(({ externalId }) => externalId !== '3').map(({ record }) => record)];
    expect(await deletions.markRecords(claim.list, asked, portionOf(claim), NOW)).toBe(true);
    expect(await store.list(claim)).toMatchObject({ stored: 3, run: { deleted: 1 } });
    expect((await store.feed(claim.list)).at(-1)).toMatchObject({ id: '1', change: 'deleted' });
  });
});
