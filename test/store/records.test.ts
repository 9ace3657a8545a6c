import { expect, test } from 'vitest';
import { CopyRemovedError } from '../../src/store/record-types.ts';
import { RemovalStore } from '../../src/store/removals.ts';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { records } = store;

const DOCUMENTS = [
  { id: 'a', name: 'Zoë Müller', email: 'zoe@example.com' },
  { id: 'b', name: 'Bob 100% sure', note: 'snake_case', _links: { self: 'https://self.example' } },
  { id: 'c', name: 'Carol 1000 sure', note: 'snakeXcase', path: 'C:\\temp' },
  { id: 'd', name: 'said "hello" to Bob', tags: ['vip', { name: 'nested word' }] },
  { id: 'e', name: '\u{1f511} key', n: 4711, city: '私は東京に住む' },
].map((document) => JSON.stringify(document).replace('4711', '4711,"big":12345678901234567890'));
/** The same as the first, as a service writes it that escapes everything. */
const ESCAPED = String.raw`{"id":"f","name":"Zo\u00eb M\u00FCller \ud83d\udd11","url":"http:\/\/x.example\/y"}`;

const { claim } = await store.claimRun();
await store.write(claim, [...DOCUMENTS.toReversed(), ESCAPED, '{"id":"gone","name":"Bob"}']);
await store.remove(claim, ['gone'], NOW);
await store.index();

async function search(text: string): Promise<string[]> {
  const { records: found, total } = await records.browse(claim.instanceId, 'contacts', {
    search: text,
    offset: 0,
    limit: 50,
  });
  expect(total).toBe(found.length);
  return found.map(({ id }) => id).toSorted();
}

async function collect(documents: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const document of documents) all.push(document);
  return all;
}

test.each([
  ['nothing', '', ['a', 'b', 'c', 'd', 'e', 'f']],
  ['spaces', '   ', ['a', 'b', 'c', 'd', 'e', 'f']],
  ['a word', 'Carol', ['c']],
  ['part of a word, in another case', 'cAR', ['c']],
  ['several words, all of which must be there, in any order', 'sure bob', ['b']],
  ['words that are not all there', 'bob carol', []],
  ['letters without their accents, and accents that are not there', 'zoe mullér', ['a', 'f']],
  ['an accent in two characters', 'Zoe\u0308', ['a', 'f']],
  ['the middle of a word, which is no beginning', 'arol', []],
  ['a number that goes on, and a percent sign', '100%', ['b', 'c']],
  ['an e-mail address', 'ZOE@example.com', ['a']],
  ['the beginning of one', 'zoe@exam', ['a']],
  ['its words in another order', 'com.zoe@example', []],
  ['Han characters within a sentence', '東京', ['e']],
  ['a number of many digits, to the letter', '12345678901234567890', ['e']],
  ['an underline', 'snake_case', ['b']],
  ['a backslash', 'C:\\temp', ['c']],
  ['quotes', '"hello"', ['d']],
  ['a quote that is not closed', '"hello', ['d']],
  ['words of the query language', 'bob OR carol', []],
  ['more of them', 'NOT bob', []],
  ['and signs of it', 'words:bob* + (NEAR ^ {', []],
  ['a star', '*', []],
  ['half of a pair of surrogates', '\ud83d', []],
  ['the character zero', 'bob\0', ['b', 'd']],
  ['a word deep in the document', 'nested', ['d']],
  ['a number', '4711', ['e']],
  ['unicode, as it is or escaped', 'Zoë', ['a', 'f']],
  ['unicode that was escaped in capitals', 'Müller', ['a', 'f']],
  ['a pair of surrogates', '\u{1f511}', ['e', 'f']],
  ['a slash, also when it was escaped', 'x.example/y', ['f']],
  ['the name of a member, which is no content', 'email', []],
  ['an address in _links, which is none either', 'self.example', []],
  ['a single quote', "'", []],
  ['SQL', "' or 1=1 --", []],
  ['what was deleted is not found', 'gone', []],
])('search: %s', async (_what, text, ids) => {
  expect(await search(text)).toEqual(ids);
});

test('pages in the order in which they were copied, with the number of all', async () => {
  const browse = (offset: number) => records.browse(claim.instanceId, 'contacts', { offset, limit: 4 });
  const [first, second, beyond] = [await browse(0), await browse(4), await browse(8)];
  expect(first.records.map(({ id }) => id)).toEqual(['e', 'd', 'c', 'b']);
  expect(second.records.map(({ id }) => id)).toEqual(['a', 'f']);
  expect(beyond.records).toEqual([]);
  expect([first.total, second.total, beyond.total]).toEqual([6, 6, 6]);
  expect(first.records[0]).toEqual({
    id: 'e',
    document: DOCUMENTS[4],
    isCut: false,
    updatedAt: NOW,
    deletedAt: null,
  });
});

test('of a large document the beginning is read for a page, and all of it for the download', async () => {
  const { claim: large } = await store.claimRun();
  const documents = [99_980, 99_981].map((length, n) => `{"id":"${n}","name":"${'é'.repeat(length)}"}`);
  await store.write(large, documents);
  await store.index();
  const shown = documents.map((document, n) => ({
    id: String(n),
    document: document.slice(0, 100_000),
    isCut: n === 1,
    updatedAt: NOW,
    deletedAt: null,
  }));
  expect(await records.find(large.instanceId, 'contacts', '1')).toEqual(shown[1]);
  for (const search of ['', 'ééé']) {
    const page = await records.browse(large.instanceId, 'contacts', { search, offset: 0, limit: 5 });
    expect(page.records).toEqual(shown);
  }
  expect(await collect(records.stream(large.instanceId, 'contacts'))).toEqual(documents);
});

test('others have their turn between the large documents of a page', async () => {
  const { claim: large } = await store.claimRun();
  const texts = Array.from({ length: 10 }, (_, n) => `{"id":"${n}","x":"word ${'x'.repeat(150_000)}"}`);
  await store.write(large, texts);
  await store.index();
  for (const search of ['', 'word']) {
    let turns = 0;
    let next = setImmediate(function count() {
      turns += 1;
      next = setImmediate(count);
    });
    const page = await records.browse(large.instanceId, 'contacts', { search, offset: 0, limit: 50 });
    clearImmediate(next);
    expect(page.records.map(({ id }) => Number(id))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(turns).toBeGreaterThanOrEqual(9);
  }
});

test('another instance or another resource has none of them', async () => {
  const stranger = await store.addInstance();
  const options = { offset: 0, limit: 50 };
  expect(await records.browse(stranger, 'contacts', options)).toEqual({
    records: [],
    total: 0,
    hasMore: false,
    pending: 0,
    isShortened: false,
    isCoarse: false,
  });
  expect(await records.browse(claim.instanceId, 'conversations', options)).toEqual({
    records: [],
    total: 0,
    hasMore: false,
    pending: 0,
    isShortened: false,
    isCoarse: false,
  });
  expect(await records.find(stranger, 'contacts', 'a')).toBeUndefined();
  expect(await collect(records.stream(stranger, 'contacts'))).toEqual([]);
});

test('a stream brings everything that is not deleted, once, in the order in which they were copied, over several portions', async () => {
  const { claim: large } = await store.claimRun();
  const ids = Array.from({ length: 1_234 }, (_, index) => `id_${(index * 7_919) % 10_007}`);
  for (let at = 0; at < ids.length; at += 100) {
    await store.write(
      large,
      ids.slice(at, at + 100).map((id) => `{"id":"${id}"}`),
      { next: 'https://x.example/p' },
    );
  }
  await store.remove(large, ids.slice(0, 3), NOW);
  const lines = await collect(records.stream(large.instanceId, 'contacts'));
  expect(lines).toEqual(ids.slice(3).map((id) => `{"id":"${id}"}`));
});

test('a stream that is read while records come in misses none that were there', async () => {
  const { claim: growing } = await store.claimRun();
  const page = (from: number) =>
    Array.from({ length: 600 }, (_, index) => `{"id":"k${String(from + 2 * index).padStart(5, '0')}"}`);
  await store.write(growing, page(0), { next: 'https://x.example/p' });
  const seen: string[] = [];
  for await (const document of records.stream(growing.instanceId, 'contacts')) {
    if (seen.length === 10) await store.write(growing, page(1), { next: 'https://x.example/p' });
    seen.push(document);
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen).toEqual(expect.arrayContaining(page(0)));
});

test('a stream reads no large document before it is its turn', async () => {
  const { claim: large } = await store.claimRun();
  const documents = Array.from({ length: 12 }, (_, n) => `{"id":"${n}","x":"${'x'.repeat(1_000_000)}"}`);
  await store.write(large, documents);
  const ids: string[] = [];
  for await (const document of records.stream(large.instanceId, 'contacts')) {
    const { id, x } = JSON.parse(document);
    ids.push(id);
    expect(x).toHaveLength(1_000_000);
    // What was read ahead would come all the same.
    if (ids.length === 1) await store.remove(large, ['6', '7', '8', '9', '10'], NOW);
  }
  expect(ids).toEqual(['0', '1', '2', '3', '4', '5', '11']);
});

/** A copy of more than two portions. */
async function addPortions(): Promise<{ instanceId: string; size: number }> {
  const { claim: large } = await store.claimRun();
  const size = 1_200;
  for (let at = 0; at < size; at += 400) {
    await store.write(
      large,
      Array.from({ length: 400 }, (_, index) => `{"id":"${at + index}"}`),
      { next: 'https://x.example/p' },
    );
  }
  return { instanceId: large.instanceId, size };
}

test.each<[string, number, (instanceId: string) => Promise<void>]>([
  ['is removed', 10, (instanceId) => store.removeCopy(instanceId)],
  ['is removed after its last record was read', 1_200, (instanceId) => store.removeCopy(instanceId)],
  [
    'begins to be removed',
    10,
    async (instanceId) =>
      void (await store.db.insertInto('removals').values({ instance_id: instanceId }).execute()),
  ],
])('a stream breaks off when the copy %s meanwhile', async (_what, at, remove) => {
  const { instanceId, size } = await addPortions();
  const seen: string[] = [];
  const reading = async () => {
    for await (const document of records.stream(instanceId, 'contacts')) {
      seen.push(document);
      if (seen.length === at) await remove(instanceId);
    }
  };
  await expect(reading()).rejects.toThrow(CopyRemovedError);
  expect(seen.length).toBeGreaterThanOrEqual(at);
  expect(seen.length).toBeLessThanOrEqual(size);
  await records.finishRemoval(instanceId);
});

test('a stream brings no large record of another company whose records have taken the numbers of a removed copy', async () => {
  const { claim: removed } = await store.claimRun();
  // All of one portion, each read by its number when its turn comes.
  const documents = (name: string) =>
    Array.from({ length: 4 }, (_, n) => `{"id":"${name} ${n}","x":"${'x'.repeat(1_000_000)}"}`);
  const numbers = async () =>
    (await store.db.selectFrom('records').select('seq').orderBy('seq', 'desc').limit(4).execute()).map(
      ({ seq }) => seq,
    );
  await store.write(removed, documents('own'));
  const taken = await numbers();
  const seen: string[] = [];
  const reading = async () => {
    for await (const document of records.stream(removed.instanceId, 'contacts')) {
      seen.push(JSON.parse(document).id);
      if (seen.length > 1) continue;
      await store.removeCopy(removed.instanceId);
      await store.write((await store.claimRun()).claim, documents('foreign'));
    }
  };
  await expect(reading()).rejects.toThrow(CopyRemovedError);
  expect(seen).toEqual(['own 0']);
  expect(await numbers()).toEqual(taken);
});

test('a stream goes on over a new authorization, and over a disconnect that keeps the copy', async () => {
  const { instanceId, size } = await addPortions();
  let count = 0;
  for await (const _document of records.stream(instanceId, 'contacts')) {
    count++;
    if (count === 10) await store.addInstance(instanceId);
  }
  expect(count).toBe(size);
  for await (const _document of records.stream(instanceId, 'contacts')) {
    count++;
    if (count === size + 10) await store.tokens.disconnect(instanceId, { deleteData: false });
  }
  expect(count).toBe(2 * size);
});

test('a copy that is being removed is none any more for a stream that begins', async () => {
  const { instanceId } = await addPortions();
  await store.db.insertInto('removals').values({ instance_id: instanceId }).execute();
  expect(await collect(records.stream(instanceId, 'contacts'))).toEqual([]);
  await records.finishRemoval(instanceId);
});

test('small and large documents come in one order', async () => {
  const { claim: mixed } = await store.claimRun();
  const documents = Array.from(
    { length: 9 },
    (_, n) => `{"id":"${n}","x":"${'é'.repeat(n % 2 ? 1 : 9_000)}"}`,
  );
  await store.write(mixed, documents);
  expect(await collect(records.stream(mixed.instanceId, 'contacts'))).toEqual(documents);
});

test('the whole copy of an instance can be removed, and only that', async () => {
  const { claim: gone } = await store.claimRun();
  await store.write(gone, ['{"id":"1"}']);
  await store.removeCopy(gone.instanceId);
  expect(await store.count(gone.instanceId, 'contacts')).toBe(0);
  expect(await records.find(gone.instanceId, 'contacts', '1')).toBeUndefined();
  expect(await store.count(claim.instanceId, 'contacts')).toBe(6);
});

test('a large copy is removed in portions that end by their size, too', async () => {
  const { claim: large } = await store.claimRun();
  const documents = Array.from({ length: 12 }, (_, n) => `{"id":"${n}","x":"${'x'.repeat(1_000_000)}"}`);
  await store.write(large, documents);
  const removals = new RemovalStore(store.db);
  await store.db.insertInto('removals').values({ instance_id: large.instanceId }).execute();
  const left = [12];
  while (await removals.resume()) left.push(await store.count(large.instanceId, 'contacts'));
  expect(left.at(-1)).toBe(0);
  expect(left.length).toBeGreaterThan(3);
});

test('something is kept of an instance as long as there are rows, also of deleted records or of what is set aside', async () => {
  const { claim: kept } = await store.claimRun();
  expect(await records.keepsAny(kept.instanceId)).toBe(false);
  await store.write(kept, ['{"id":"1"}']);
  expect(await records.keepsAny(kept.instanceId)).toBe(true);
  await store.remove(kept, ['1'], NOW);
  expect(await records.keepsAny(kept.instanceId)).toBe(true);
  await store.removeCopy(kept.instanceId);
  expect(await records.keepsAny(kept.instanceId)).toBe(false);
  await store.instances.setStatus(kept.instanceId, 'active', { from: ['disconnected'] });
  await store.write((await store.claimRun(kept)).claim, ['{"no":"id"}']);
  expect(await records.keepsAny(kept.instanceId)).toBe(true);
});
