import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { RemovalStore } from '../../src/store/removals.ts';
import { SearchIndex } from '../../src/store/search-index.ts';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { records, runs } = store;
const index = new SearchIndex(store.db);
const next = 'https://x.example/next';

async function search(instanceId: string, text: string) {
  const { total, pending } = await records.browse(instanceId, 'contacts', {
    search: text,
    offset: 0,
    limit: 5,
  });
  return { total, pending };
}

test('what is written is found after its turn, and until then said to be missing', async () => {
  const { claim } = await store.claimRun();
  const find = (text: string) => search(claim.instanceId, text);
  await store.write(claim, ['{"id":"1","name":"Ada"}', '{"id":"2","name":"Grace"}'], { next });
  expect(await find('ada')).toEqual({ total: 0, pending: 2 });
  await store.index();
  expect(await find('ada')).toEqual({ total: 1, pending: 0 });

  await store.write(claim, ['{"id":"1","name":"Joan"}'], { next });
  await store.remove(claim, ['2'], NOW);
  expect(await find('grace')).toEqual({ total: 0, pending: 2 });
  await store.index();
  expect(await find('ada')).toEqual({ total: 0, pending: 0 });
  expect(await find('joan')).toEqual({ total: 1, pending: 0 });

  await store.write(claim, ['{"id":"2","name":"Grace"}'], { next });
  await store.index();
  expect(await find('grace')).toEqual({ total: 1, pending: 0 });
});

test('a portion that takes too long leaves the rest to the next', async () => {
  const { claim } = await store.claimRun();
  await store.write(
    claim,
    Array.from({ length: 5 }, (_, n) => `{"id":"${n}","name":"word"}`),
  );
  for (const left of [4, 3, 2, 1, 0]) {
    expect(await index.indexPortion(-1)).toEqual({ records: 1 });
    expect(await search(claim.instanceId, 'word')).toEqual({ total: 5 - left, pending: left });
  }
  expect(await index.indexPortion(-1)).toBeUndefined();
});

test('several that work on the queue at the same time do everything once', async () => {
  const { claim } = await store.claimRun();
  for (let page = 0; page < 6; page++) {
    await store.write(claim, [`{"id":"${page}","name":"shared"}`], { next });
  }
  const portions = await Promise.all(Array.from({ length: 8 }, () => index.indexPortion(100)));
  expect(portions.filter((portion) => portion !== undefined).length).toBe(6);
  expect(await search(claim.instanceId, 'shared')).toEqual({ total: 6, pending: 0 });
});

test('more matches than are counted are said to be more', async () => {
  const { claim } = await store.claimRun();
  for (let page = 0; page <= 100; page++) {
    await store.write(
      claim,
      Array.from({ length: 100 }, (_, n) => `{"id":"${page}.${n}","name":"everywhere"}`),
      { next },
    );
  }
  await store.index();
  const found = await records.browse(claim.instanceId, 'contacts', {
    search: 'every',
    offset: 9_990,
    limit: 5,
  });
  expect(found).toMatchObject({ total: 10_000, hasMore: true });
  expect(found.records.map(({ id }) => id)).toEqual(['99.90', '99.91', '99.92', '99.93', '99.94']);
}, 20_000);

test('a copy that is removed is gone from the index, and what is copied after is not touched', async () => {
  const { claim } = await store.claimRun();
  await store.write(
    claim,
    Array.from({ length: 1_200 }, (_, n) => `{"id":"${n}","name":"lost"}`),
    { next },
  );
  await store.index();
  await store.write(claim, ['{"id":"new","name":"lost before it was found"}'], { next });
  const { length: before } = await store.db.selectFrom('records').select('seq').execute();
  await records.removeAll(claim.instanceId);
  expect(await search(claim.instanceId, 'lost')).toEqual({ total: 0, pending: 0 });
  expect(await store.db.selectFrom('records').select('seq').execute()).toHaveLength(before - 1_201);
  // A row of the index, found or not, has one in this table of its own.
  const { rows: indexed } = await sql`select id from search_docsize`.execute(store.db);
  expect(indexed).toHaveLength(before - 1_201);

  const other = await store.claimRun();
  await store.write(other.claim, ['{"id":"1","name":"kept"}'], { next });
  await store.index();
  expect(await search(other.claim.instanceId, 'kept')).toEqual({ total: 1, pending: 0 });
  expect(await search(claim.instanceId, 'kept')).toEqual({ total: 0, pending: 0 });
});

test('no run of an instance begins while its copy is being removed; a removal that broke off is finished', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1","name":"half"}'], { next });
  await store.index();
  await store.db.insertInto('removals').values({ instance_id: claim.instanceId }).execute();
  expect(await runs.claim(claim)).toBeUndefined();
  const removals = new RemovalStore(store.db);
  expect(await removals.resume()).toBe(true);
  expect(await removals.resume()).toBe(false);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(0);
  expect(await runs.claim(claim)).toMatchObject({ stored: 0 });
});
