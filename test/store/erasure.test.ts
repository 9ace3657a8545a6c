import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SEARCH_CONSUMER } from '../../src/store/changes.ts';
import { readItems } from '../../src/store/page-items.ts';
import { collect, DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const BROKEN = { kind: 'handler', detail: 'Ada is broken.' } as const;

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, db, erasure, records } = store;

  const find = ({ instanceId }: TestClaim, id: string) => records.find(instanceId, 'contacts', id);
  const browse = async ({ instanceId }: TestClaim, search = '') => {
    const page = await records.browse(instanceId, 'contacts', { search, offset: 0, limit: 9 });
    return page.records.map(({ id }) => id);
  };
  const rowOf = (claim: TestClaim, id: string) =>
    db
      .selectFrom('records')
      .selectAll()
      .where('list', '=', claim.list)
      .where('external_id', '=', id)
      .executeTakeFirstOrThrow();
  /** A run over the list that sees these documents alone, with its deletions at a moment. */
  async function sync(claim: TestClaim, documents: readonly string[], now = NOW) {
    const next = await store.claimRun(claim);
    const run = await store.write(next, documents);
    await store.markUnseen(next, now);
    await store.finish(next, { now });
    return run;
  }

  test('an erased record keeps its id and nothing else', async () => {
    const claim = await store.copy(['{"id":"a","name":"Ada"}', '{"id":"b","name":"Ada"}']);
    await store.index(claim);
    await store.bury(claim, 'a');
    expect(await erasure.erase(claim.list, 'a', NOW + 5)).toBe(0);
    const row = await rowOf(claim, 'a');
    expect(row).toMatchObject({ document: null, hash: null, deleted_at: NOW + 5, erased_at: NOW + 5 });
    expect(await changes.deadLetters(claim.list, 'handler', 1)).toEqual([]);
    expect(await changes.find(claim.list, 'handler')).toMatchObject({ error_kind: null, error_detail: null });
    expect([await browse(claim), await browse(claim, 'ada'), await find(claim, 'a')]).toEqual([
      ['b'],
      ['b'],
      undefined,
    ]);
    expect(await collect(records.stream(claim.instanceId, 'contacts'))).toMatchObject([{ id: 'b' }]);
    expect(await store.list(claim)).toMatchObject({ stored: 1, change_seq: row.change_seq });
  });

  test('an erased record stays away from later installs of its company, and leaves a hash alone', async () => {
    const claim = await store.copy(documentsOf(3, 'person-'));
    const other = await store.copy(documentsOf(3, 'person-'));
    for (const id of ['person-0', 'person-2']) await erasure.erase(claim.list, id, NOW);
    const install = async () => {
      await store.tokens.disconnect(claim.instanceId, { deleteData: true });
      await store.removals.finish();
      await store.addInstance(claim.instanceId);
      return store.claimRun({ instanceId: claim.instanceId, resource: 'contacts' });
    };
    for (let times = 0; times < 2; times++) {
      const again = await install();
      expect(await store.write(again, documentsOf(3, 'person-'))).toMatchObject({ created: 1, records: 3 });
      const { items } = readItems(documentsOf(3, 'person-'));
      expect(await store.pages.hasNews(again, { items, rejected: [] })).toBe(false);
      await store.finish(again);
      expect(await browse(again)).toEqual(['person-1']);
      expect(await store.list(again)).toMatchObject({ stored: 1 });
    }
    expect(await browse(other)).toHaveLength(3);
    const hashes = await db.selectFrom('tombstones').selectAll().execute();
    expect(hashes).toHaveLength(3);
    for (const { hash } of hashes) expect(hash).toMatch(/^[\w-]{43}$/);
  });

  test('actions no longer name an erased record', async () => {
    const claim = await store.copy(documentsOf(2));
    const { instanceId } = claim;
    const facts = { instanceId, resource: 'contacts', action: 'replay', by: 'administrator' } as const;
    for (const record of ['0', '1']) await store.actions.add({ ...facts, record }, NOW);
    await erasure.erase(claim.list, '0', NOW);
    const noted = await store.actions.list({ instanceId, limit: 9 });
    expect(noted.slice(0, 2).map(({ record }) => record)).toEqual(['1', null]);
  });

  test('every consumer gets the erased record as deleted', async () => {
    const claim = await store.copy(documentsOf(2));
    const { change_seq } = await store.list(claim);
    await erasure.erase(claim.list, '0', NOW);
    const feed = await store.feed(claim.list, change_seq);
    expect(feed).toMatchObject([{ id: '0', change: 'deleted', document: null }]);
  });

  test('a consumer that holds the document cannot commit', async () => {
    const claim = await store.copy(['{"id":"a","name":"Ada"}']);
    const [held, entries] = [await store.hold(claim, SEARCH_CONSUMER), await store.feed(claim.list)];
    await erasure.erase(claim.list, 'a', NOW);
    expect(await changes.deliver(held, entries, NOW)).toBeUndefined();
    expect(await changes.bury(held, entries[0] ?? expect.unreachable(), BROKEN, NOW)).toBeUndefined();
    await store.index(claim);
    expect(await browse(claim, 'ada')).toEqual([]);
  });

  test('no page brings an erased record back', async () => {
    const claim = await store.copy(documentsOf(2));
    await erasure.erase(claim.list, '0', NOW);
    expect(await sync(claim, ['{"id":"0","n":2}', '{"id":"1"}'])).toMatchObject({ created: 0, seen: 1 });
    expect([await browse(claim), (await rowOf(claim, '0')).document]).toEqual([['1'], null]);
  });

  test('a deleted record can be erased once', async () => {
    const claim = await store.copy(documentsOf(2));
    await sync(claim, ['{"id":"1"}']);
    expect(await erasure.erase(claim.list, '0', NOW + 5)).toBe(0);
    expect(await rowOf(claim, '0')).toMatchObject({ document: null, deleted_at: NOW, erased_at: NOW + 5 });
    expect(await store.list(claim)).toMatchObject({ stored: 1 });
    const { change_seq } = await store.list(claim);
    expect([await erasure.erase(claim.list, '0', NOW), await erasure.erase(claim.list, 'x', NOW)]).toEqual([
      undefined,
      undefined,
    ]);
    expect((await store.list(claim)).change_seq).toBe(change_seq);
  });

  test('the documents of long deleted records are erased', async () => {
    const claim = await store.copy(documentsOf(1_200));
    await store.bury(claim, '7');
    await sync(claim, documentsOf(1), NOW + 10);
    await sync(claim, [], NOW + 20);
    const before = await store.list(claim);
    expect(await erasure.eraseDeleted(NOW + 9)).toBe(0);
    expect(await erasure.eraseDeleted(NOW + 10)).toBe(1_199);
    expect(await rowOf(claim, '7')).toMatchObject({ document: null, hash: null, erased_at: null });
    expect(await find(claim, '7')).toMatchObject({ document: null, isCut: false, deletedAt: NOW + 10 });
    expect(await find(claim, '0')).toMatchObject({ document: '{"id":"0"}' });
    expect(await changes.deadLetters(claim.list, 'handler', 1)).toEqual([]);
    // The feed says nothing new.
    expect(await store.list(claim)).toEqual(before);
    expect((await store.feed(claim.list)).every(({ change }) => change === 'deleted')).toBe(true);
  });

  test('a record that returns after its document was erased is copied anew', async () => {
    const claim = await store.copy(['{"id":"a"}']);
    await sync(claim, []);
    await erasure.eraseDeleted(NOW);
    const { change_seq } = await store.list(claim);
    expect(await sync(claim, ['{"id":"a"}'])).toMatchObject({ created: 1 });
    expect(await find(claim, 'a')).toMatchObject({ document: '{"id":"a"}', deletedAt: null });
    expect(await store.feed(claim.list, change_seq)).toMatchObject([{ id: 'a', change: 'created' }]);
  });
});

test('neither SQLite’s file nor its log holds a word of an erased record', async () => {
  const store = await openTestStore('sqlite');
  const directory = dirname(store.url.replace('file:', ''));
  const words = ['zyxwverased', 'zyxwvdeleted', 'zyxwvkept'];
  const found = () => {
    const files = readdirSync(directory).map((name) => readFileSync(join(directory, name)));
    return words.map((word) => files.some((file) => file.includes(word)));
  };
  const others = Array.from({ length: 300 }, (_, n) => `{"id":"o${n}","x":"${'some text '.repeat(n)}"}`);
  const documents = words.map((word) => `{"id":"${word.slice(5)}","name":"${word}"}`);
  const claim = await store.copy([...documents, ...others]);
  await store.index(claim);
  for (const id of ['erased', 'deleted']) {
    expect(found()[words.indexOf(`zyxwv${id}`)]).toBe(true);
    if (id === 'erased') await store.erasure.erase(claim.list, id, NOW);
    else {
      const next = await store.claimRun(claim);
      await store.write(next, [...documents.slice(2), ...others]);
      await store.markUnseen(next);
      await store.erasure.eraseDeleted(NOW);
    }
    await store.erasure.purge();
  }
  expect(found()).toEqual([false, false, true]);
  await store.tokens.disconnect(claim.instanceId, { deleteData: true });
  await store.removals.finish();
  await store.erasure.purge();
  expect(found()).toEqual([false, false, false]);
  // Nothing was erased since: it would rewrite the index for nothing.
  const settings = store.db.selectFrom('settings').select('name').where('name', '=', 'purge_due');
  expect(await settings.execute()).toEqual([]);
});
