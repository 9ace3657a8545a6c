import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { joinDatabase } from '../../src/store/open-database.ts';
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

/** How many rows the index has: each, found or not, has one in this table of its own. */
async function indexedRows() {
  const { rows } = await sql`select id from search_docsize`.execute(store.db);
  return rows.length;
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

test('what is more than a portion is left to the next', async () => {
  const { claim } = await store.claimRun();
  await store.write(
    claim,
    Array.from({ length: 5 }, (_, n) => `{"id":"${n}","name":"word"}`),
  );
  for (const [records, left] of [
    [2, 3],
    [2, 1],
    [1, 0],
  ]) {
    expect(await index.indexPortion(2)).toEqual({ records, unreadable: [] });
    expect(await search(claim.instanceId, 'word')).toEqual({ total: 5 - (left ?? 0), pending: left });
  }
  expect(await index.indexPortion(2)).toBeUndefined();
});

test('several that work on the queue at the same time do everything once', async () => {
  const { claim } = await store.claimRun();
  for (let page = 0; page < 6; page++) {
    await store.write(claim, [`{"id":"${page}","name":"shared"}`], { next });
  }
  const others = Array.from({ length: 3 }, () => new SearchIndex(store.db));
  let indexed = 0;
  const workOff = async (own: SearchIndex) => {
    for (let portion = await own.indexPortion(1); portion !== undefined; portion = await own.indexPortion(1))
      indexed += portion.records;
  };
  await Promise.all(others.map(workOff));
  expect(indexed).toBe(6);
  expect(await search(claim.instanceId, 'shared')).toEqual({ total: 6, pending: 0 });
});

test('long records without a word in common are written few at a time, and merged as fast as they come', async () => {
  await store.index();
  const { claim } = await store.claimRun();
  const wordsOf = (id: number) =>
    Array.from({ length: 10_000 }, (_, at) => `${id}x${at.toString(36)}`).join(' ');
  const documents = Array.from({ length: 40 }, (_, id) => JSON.stringify({ id, words: wordsOf(id) }));
  await store.write(claim, documents, { next });
  const portions: number[] = [];
  for (;;) {
    const portion = await index.indexPortion(documents.length);
    if (portion === undefined) break;
    portions.push(portion.records);
    // Where they become too many, SQLite merges all at once, and nobody else can write for seconds.
    expect(await store.countIndexParts()).toBeLessThan(12);
  }
  expect(Math.max(...portions)).toBeLessThan(6);
  expect(portions.reduce((sum, records) => sum + records)).toBe(documents.length);
  expect(await search(claim.instanceId, '7xaa')).toEqual({ total: 1, pending: 0 });
});

describe('a record that changes after it was read', () => {
  /** Lets something happen when a portion has read its records, and is about to write. */
  async function indexWhile(happens: () => Promise<unknown>) {
    const db = await joinDatabase(store.url);
    const { writeAtOnce } = db;
    db.writeAtOnce = async (work) => {
      db.writeAtOnce = writeAtOnce;
      await happens();
      return db.writeAtOnce(work);
    };
    const portion = await new SearchIndex(db).indexPortion(50);
    await db.destroy();
    return portion;
  }

  test('is not indexed with its old words, whatever has become of the queue', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"old"}', '{"id":"2","name":"old"}'], { next });
    // The other index works everything off; the new entry of the queue has the place and the records of the one before.
    const portion = await indexWhile(async () => {
      await store.index();
      await store.write(claim, ['{"id":"1","name":"new"}', '{"id":"2","name":"new"}'], { next });
    });
    expect(portion).toEqual({ records: 0, unreadable: [] });
    expect(await search(claim.instanceId, 'new')).toEqual({ total: 0, pending: 2 });
    await store.index();
    expect(await search(claim.instanceId, 'old')).toEqual({ total: 0, pending: 0 });
    expect(await search(claim.instanceId, 'new')).toEqual({ total: 2, pending: 0 });
  });

  test('is left in the queue, the others are not', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"mine"}', '{"id":"2","name":"mine"}'], { next });
    const portion = await indexWhile(() => store.write(claim, ['{"id":"2","name":"yours"}'], { next }));
    expect(portion).toEqual({ records: 1, unreadable: [] });
    expect(await search(claim.instanceId, 'mine')).toEqual({ total: 1, pending: 2 });
    await store.index();
    expect(await search(claim.instanceId, 'mine')).toEqual({ total: 1, pending: 0 });
    expect(await search(claim.instanceId, 'yours')).toEqual({ total: 1, pending: 0 });
  });

  test('is not indexed when it is deleted meanwhile, and is when it is back', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"coming"}'], { next });
    const before = await indexedRows();
    await indexWhile(() => store.remove(claim, ['1'], NOW));
    expect(await indexedRows()).toBe(before);
    await indexWhile(() => store.write(claim, ['{"id":"1","name":"coming"}'], { next }));
    await store.index();
    expect(await search(claim.instanceId, 'coming')).toEqual({ total: 1, pending: 0 });
  });

  test('leaves nothing in the index when the copy is removed', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"going"}'], { next });
    const before = await indexedRows();
    expect(await indexWhile(() => store.removeCopy(claim.instanceId))).toEqual({
      records: 0,
      unreadable: [],
    });
    expect(await indexedRows()).toBe(before);
  });
});

describe('a record that cannot be read', () => {
  test('is told once, and keeps none of the others from the index', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"before"}', '{"id":"2"}', '{"id":"3","name":"behind"}'], {
      next,
    });
    const { seq, list } = await store.db
      .updateTable('records')
      .set({ document: '{"id":"2","name":' })
      .where('id', '=', '2')
      .where('list', '=', (select) =>
        select.selectFrom('runs').select('list').where('instance_id', '=', claim.instanceId),
      )
      .returning(['seq', 'list'])
      .executeTakeFirstOrThrow();
    const { instanceId, resource } = claim;
    expect(await index.indexPortion(50)).toEqual({
      records: 3,
      unreadable: [{ instanceId, resource, list, seq }],
    });
    expect(await index.indexPortion(50)).toBeUndefined();
    expect(await search(instanceId, 'before')).toEqual({ total: 1, pending: 0 });
    expect(await search(instanceId, 'behind')).toEqual({ total: 1, pending: 0 });
  });

  test('is found as soon as it can be read', async () => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"1","name":"mended"}'], { next });
    await store.db.updateTable('records').set({ document: '{' }).where('id', '=', '1').execute();
    await store.index();
    expect(await search(claim.instanceId, 'mended')).toEqual({ total: 0, pending: 0 });
    await store.write(claim, ['{"id":"1","name":"mended now"}'], { next });
    await store.index();
    expect(await search(claim.instanceId, 'mended')).toEqual({ total: 1, pending: 0 });
  });
});

test('an entry that the one before got into trouble with comes after those behind it', async () => {
  const { claim } = await store.claimRun();
  for (const id of ['1', '2', '3']) await store.write(claim, [`{"id":"${id}","name":"queued"}`], { next });
  const places = (await store.db.selectFrom('search_queue').select('place').orderBy('place').execute()).map(
    ({ place }) => place,
  );
  const worked: number[] = [];
  const [first = 0, ...others] = places;
  const successor = new SearchIndex(store.db, { behind: first, onEntry: (place) => worked.push(place) });
  for (const _ of places) await successor.indexPortion(50);
  expect(worked).toEqual([...others, first]);
  expect(await search(claim.instanceId, 'queued')).toEqual({ total: 3, pending: 0 });
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
});

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
  await store.removeCopy(claim.instanceId);
  expect(await search(claim.instanceId, 'lost')).toEqual({ total: 0, pending: 0 });
  expect(await store.db.selectFrom('records').select('seq').execute()).toHaveLength(before - 1_201);
  expect(await indexedRows()).toBe(before - 1_201);

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

test('a portion of large records ends by their size, and the next goes on behind it', async () => {
  const { claim } = await store.claimRun();
  const documents = Array.from(
    { length: 12 },
    (_, n) => `{"id":"${n}","x":"w${n} ${'x'.repeat(1_000_000)}"}`,
  );
  await store.write(claim, documents, { next });
  const portions: number[] = [];
  for (let done = await index.indexPortion(50); done !== undefined; done = await index.indexPortion(50)) {
    portions.push(done.records);
  }
  expect(portions).toEqual([5, 5, 2]);
  for (const text of ['w0', 'w4', 'w5', 'w11']) {
    expect(await search(claim.instanceId, text)).toMatchObject({ pending: 0, total: 1 });
  }
});
