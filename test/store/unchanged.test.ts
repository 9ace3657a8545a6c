import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { deletions, runs } = store;

/** Counts what is done to rows of the copy from now on. */
async function watchRecords(): Promise<() => Promise<number>> {
  await sql`create temp table touched (seq integer)`.execute(store.db);
  for (const event of ['insert', 'update', 'delete']) {
    const row = event === 'delete' ? 'old' : 'new';
    await sql
      .raw(
        `create temp trigger on_${event} after ${event} on main.records begin insert into touched values (${row}.seq); end`,
      )
      .execute(store.db);
  }
  return async () =>
    (await sql<{ count: number }>`select count(*) as count from touched`.execute(store.db)).rows[0]?.count ??
    -1;
}

/** A page of hundred documents. */
function documents(page: number): string[] {
  return Array.from({ length: 100 }, (_, index) => `{"id":"r${page * 100 + index}","n":1.0}`);
}

test('a second run over unchanged data writes no record, and what it saw is a single range', async () => {
  const { claim } = await store.claimRun();
  const next = 'https://x.example/next';
  for (const page of [0, 1, 2]) await store.write(claim, documents(page), { next });
  await runs.finish(claim, NOW);
  await store.index();

  const touched = await watchRecords();
  const { claim: second } = await store.claimRun(claim);
  for (const page of [0, 1, 2]) await store.write(second, documents(page), { next });
  expect(await touched()).toBe(0);
  expect(await store.db.selectFrom('search_queue').selectAll().execute()).toEqual([]);
  expect((await store.db.selectFrom('seen_ranges').selectAll().execute()).length).toBe(1);
  expect(await deletions.unseen(second, 0, 10)).toEqual({ records: [], after: null });

  await store.write(second, ['{"id":"r7","n":2}'], { next });
  expect(await touched()).toBe(1);
});

test('what is seen in any order, page by page and beside other companies, is seen', async () => {
  const mine = await store.claimRun();
  const other = await store.claimRun();
  const next = 'https://x.example/next';
  for (const page of [0, 1, 2, 3]) {
    await store.write(mine.claim, documents(page), { next });
    await store.write(other.claim, documents(page), { next });
  }
  await runs.finish(mine.claim, NOW);
  const { claim } = await store.claimRun(mine.claim);
  const gone = new Set([0, 1, 57, 199, 200, 201, 399]);
  const seen = Array.from({ length: 400 }, (_, index) => (index * 149) % 400).filter((n) => !gone.has(n));
  for (let at = 0; at < seen.length; at += 100) {
    const page = seen.slice(at, at + 100).map((n) => `{"id":"r${n}","n":1.0}`);
    await store.write(claim, page, { next });
  }

  const unseen: number[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const portion = await deletions.unseen(claim, after, 3);
    unseen.push(...portion.records.map(({ document }) => Number(JSON.parse(document).id.slice(1))));
    await deletions.mark(
      claim,
      portion.records.map(({ seq }) => seq),
      NOW,
    );
    after = portion.after;
  }
  expect(unseen).toEqual([...gone]);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(393);
  expect(await runs.find(claim)).toMatchObject({ stored: 393, deleted: 7 });
  expect(await runs.find(other.claim)).toMatchObject({ stored: 400 });
});

test('a run that begins anew has seen nothing', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/next' });
  await runs.fail(claim, { error: 'refused', keepsPlace: false, now: NOW });
  const { claim: anew } = await store.claimRun(claim);
  expect((await deletions.unseen(anew, 0, 10)).records.length).toBe(1);
});

test('what is stored is counted as it comes, goes and comes back', async () => {
  const { claim } = await store.claimRun();
  const stored = async () => (await runs.find(claim))?.stored;
  await store.write(claim, ['{"id":"1"}', '{"id":"2"}', '{"id":"1"}'], { next: 'https://x.example/next' });
  expect(await stored()).toBe(2);
  await store.remove(claim, ['1'], NOW);
  expect(await stored()).toBe(1);
  await store.write(claim, ['{"id":"1"}', '{"id":"3"}'], { next: 'https://x.example/next' });
  expect(await stored()).toBe(3);
  await runs.finish(claim, NOW);
  await runs.start(claim, NOW);
  expect(await stored()).toBe(3);
  await store.tokens.disconnect(claim.instanceId);
  expect(await stored()).toBe(3);
  await store.removeCopy(claim.instanceId);
  expect(await stored()).toBe(0);
});

test('the id of an integer is its digits, wherever it stands in the document', async () => {
  const { claim } = await store.claimRun();
  const documents = [
    '{"n":1,"id":12345678901234567890}',
    '{"a":{"id":5},"id":9007199254740993,"b":[{"id":6}]}',
    '{"n":1,"id":1.0}',
    '{"n":1,"id":1e2}',
    `{"deep":${'['.repeat(2_000)}${']'.repeat(2_000)},"id":77}`,
  ];
  expect(await store.write(claim, documents)).toMatchObject({ records: 3, skipped: 2 });
  for (const id of ['12345678901234567890', '9007199254740993', '77']) {
    expect((await store.records.find(claim.instanceId, 'contacts', `#${id}`))?.id).toBe(`#${id}`);
  }
});
