import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { deletions, records, runs } = store;

/** An instance whose first run saw five records, and a second run that is under way. */
async function startSecondRun() {
  const { claim: first } = await store.claimRun();
  await store.write(
    first,
    ['a', 'b', 'c', 'd', 'e'].map((id) => `{"id":"${id}"}`),
  );
  await runs.finish(first, NOW);
  const { run, claim } = await store.claimRun({ instanceId: first.instanceId, resource: 'contacts' });
  const unseen = async () => {
    const { records } = await deletions.unseen(claim, 0, 100);
    return records.map(({ document }) => JSON.parse(document).id);
  };
  return { run, claim, unseen };
}

test('only what this run did not see is unseen', async () => {
  const { claim, unseen } = await startSecondRun();
  expect(await unseen()).toEqual(['a', 'b', 'c', 'd', 'e']);
  await store.write(claim, ['{"id":"b"}', '{"id":"f"}'], { next: 'https://x.example/p2' });
  await store.write(claim, ['{"id":"d","changed":true}']);
  expect(await unseen()).toEqual(['a', 'c', 'e']);
});

test('what a run has seen is counted once, however often and in whatever order it came', async () => {
  const { claim } = await startSecondRun();
  const documents = (ids: string) => [...ids].map((id) => `{"id":"${id}"}`);
  expect(await deletions.seenCount(claim)).toBe(0);
  for (const ids of ['e', 'bc', 'd', 'cdefg', 'bcd', 'g', 'abcdefg']) {
    await store.write(claim, documents(ids), { next: 'https://x.example/p2' });
  }
  expect(await deletions.seenCount(claim)).toBe(7);
  expect(await deletions.seenCount({ ...claim, resource: 'conversations' })).toBe(0);
});

test('pages may overlap in any way: what one of them has brought is not unseen', async () => {
  const ids = 'abcdefghij';
  const page = fc
    .subarray([...ids], { minLength: 1 })
    .chain((some) => fc.shuffledSubarray(some, { minLength: 1 }));
  await fc.assert(
    fc.asyncProperty(
      fc.array(page, { maxLength: 8 }),
      fc.integer({ min: 1, max: 12 }),
      async (pages, portion) => {
        const { claim: first } = await store.claimRun();
        const documents = (of: readonly string[]) => of.map((id) => `{"id":"${id}"}`);
        await store.write(first, documents([...ids]));
        await runs.finish(first, NOW);
        const { claim } = await store.claimRun({ instanceId: first.instanceId, resource: 'contacts' });
        for (const some of pages) await store.write(claim, documents(some), { next: 'https://x.example/p2' });
        const unseen: string[] = [];
        for (let after: number | null = 0; after !== null; ) {
          const found = await deletions.unseen(claim, after, portion);
          unseen.push(...found.records.map(({ document }) => JSON.parse(document).id));
          after = found.after;
        }
        expect(unseen).toEqual([...ids].filter((id) => !pages.flat().includes(id)));
        expect(await deletions.seenCount(claim)).toBe(new Set(pages.flat()).size);
      },
    ),
    { seed: 9, numRuns: 60 },
  );
});

test('a page that goes on where another ended makes no range of its own', async () => {
  const { claim } = await startSecondRun();
  const ranges = () =>
    store.db
      .prepare<[number], { first: number; last: number }>(
        'select first, last from seen_ranges where list = ? order by first',
      )
      .all(list);
  const { list } = (await runs.find(claim)) ?? { list: -1 };
  const see = (...ids: string[]) =>
    store.write(
      claim,
      ids.map((id) => `{"id":"${id}"}`),
      { next: 'https://x.example/p2' },
    );
  await see('a', 'b');
  const [first] = ranges();
  await see('d');
  expect(ranges()).toHaveLength(2);
  await see('c');
  await see('e');
  expect(ranges()).toEqual([{ first: first?.first, last: (first?.first ?? 0) + 4 }]);
  expect(await deletions.seenCount(claim)).toBe(5);
});

test('what is marked is gone from the copy, but can be found; the run counts it', async () => {
  const { claim, unseen } = await startSecondRun();
  await store.write(claim, ['{"id":"a"}']);
  expect(await store.remove(claim, ['b', 'c'], NOW + 5)).toBe(true);
  expect(await unseen()).toEqual(['d', 'e']);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(3);
  expect(await records.find(claim.instanceId, 'contacts', 'b')).toMatchObject({
    deletedAt: NOW + 5,
    document: '{"id":"b"}',
  });
  expect(await runs.find(claim)).toMatchObject({ deleted: 2 });
  await store.remove(claim, ['d', 'e'], NOW + 6);
  expect(await runs.find(claim)).toMatchObject({ deleted: 4 });
});

test('a run that resumes keeps what it has seen', async () => {
  const { claim, unseen } = await startSecondRun();
  await store.write(claim, ['{"id":"a"}', '{"id":"b"}'], { next: 'https://x.example/p2' });
  await runs.fail(claim, { error: 'trouble', keepsPlace: true, now: NOW });
  const resumed = await store.claimRun(claim);
  await store.write(resumed.claim, ['{"id":"c"}']);
  expect(await unseen()).toEqual(['d', 'e']);
});

test('no more at a time than is asked for, and none of other instances or resources', async () => {
  const { claim } = await startSecondRun();
  const other = await startSecondRun();
  expect((await deletions.unseen(claim, 0, 2)).records.length).toBe(2);
  expect(await deletions.unseen({ ...claim, resource: 'conversations' }, 0, 10)).toEqual({
    records: [],
    after: null,
  });
  await store.remove(claim, ['a', 'b', 'c', 'd', 'e'], NOW);
  expect(await other.unseen()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('a record that comes back is no longer deleted, and not unseen', async () => {
  const { claim, unseen } = await startSecondRun();
  await store.remove(claim, ['a'], NOW);
  await store.write(claim, ['{"id":"a"}']);
  expect(await unseen()).toEqual(['b', 'c', 'd', 'e']);
  expect(await records.find(claim.instanceId, 'contacts', 'a')).toMatchObject({ deletedAt: null });
});

test('a portion of what is unseen ends also by its size, and the next goes on behind it', async () => {
  const { claim: first } = await store.claimRun();
  const documents = Array.from({ length: 12 }, (_, n) => `{"id":"${n}","x":"${'x'.repeat(1_000_000)}"}`);
  await store.write(first, [...documents, `{"id":"12","x":"${'x'.repeat(6_000_000)}"}`, '{"id":"13"}']);
  await runs.finish(first, NOW);
  const { claim } = await store.claimRun(first);
  const portions: string[][] = [];
  for (let after: number | null = 0; after !== null; ) {
    const portion = await deletions.unseen(claim, after, 100);
    after = portion.after;
    portions.push(portion.records.map(({ document }) => JSON.parse(document).id));
  }
  expect(portions.flat()).toEqual(Array.from({ length: 14 }, (_, n) => String(n)));
  expect(portions.map(({ length }) => length)).toEqual([5, 5, 3, 1]);
});
