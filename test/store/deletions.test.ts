import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { deletions, runs } = store;

  /** A copy of so many records, and a run that has seen the first of them. */
  async function mostGone(count: number, seen = 1) {
    const first = await store.copy(documentsOf(count));
    const claim = await store.claimRun(first);
    await store.write(claim, documentsOf(seen));
    return claim;
  }
  const portionOf = (claim: TestClaim) => ({ beforeRun: claim.run, counter: claim.run, claim });

  test('records that a whole run did not see come as deleted', async () => {
    const claim = await mostGone(3);
    const before = (await store.list(claim)).change_seq;
    expect(await deletions.countUnseen(claim.list, claim.run)).toBe(2);
    expect(await deletions.markPortion(claim.list, portionOf(claim), 0, NOW + 5)).toEqual({
      marked: 2,
      next: undefined,
    });
    expect(await deletions.countUnseen(claim.list, claim.run)).toBe(0);
    const told = await store.feed(claim.list, before);
    expect(told.map(({ id, change, document }) => [id, change, document])).toEqual([
      ['1', 'deleted', null],
      ['2', 'deleted', null],
    ]);
    expect(await store.list(claim)).toMatchObject({
      stored: 1,
      change_seq: told.at(-1)?.seq,
      run: { deleted: 2 },
    });
    // Its document stays until the retention is over.
    expect(await store.records.find(claim.instanceId, 'contacts', '2')).toMatchObject({
      document: '{"id":"2"}',
      deletedAt: NOW + 5,
    });
  });

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

  test('a record that a later run has seen is not marked', async () => {
    const held = await mostGone(4);
    await runs.finish(held, 3, NOW);
    const later = await store.claimRun(held);
    await store.write(later, ['{"id":"0"}', '{"id":"1"}']);
    // A person confirms what the run before held.
    const portion = { beforeRun: held.run, counter: held.run };
    expect(await deletions.markPortion(held.list, portion, 0, NOW)).toMatchObject({ marked: 2 });
    expect(await store.list(held)).toMatchObject({ stored: 2, run: { id: later.run, deleted: 0 } });
    const live = await store.records.browse(held.instanceId, 'contacts', { offset: 0, limit: 9 });
    expect(live.records.map(({ id }) => id)).toEqual(['0', '1']);
    expect((await runs.lastFinished(held.list))?.deleted).toBe(2);
  });

  test.each<[string, (claim: TestClaim) => Promise<unknown>]>([
    ['of another worker', (claim) => runs.claim(claim)],
    [
      'of a paused instance',
      ({ instanceId }) => store.instances.setStatus(instanceId, 'paused', { from: ['active'] }),
    ],
    ['of a removed copy', ({ instanceId }) => store.tokens.disconnect(instanceId, { deleteData: true })],
  ])('a run %s marks nothing', async (_what, lose) => {
    const claim = await mostGone(3);
    await lose(claim);
    expect(await deletions.markPortion(claim.list, portionOf(claim), 0, NOW)).toBe('lost');
    expect((await store.feed(claim.list)).map(({ change }) => change)).toEqual(Array(3).fill('created'));
  });
});
