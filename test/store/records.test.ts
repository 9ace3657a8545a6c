import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { CopyRemovedError } from '../../src/store/records.ts';
import { collect, DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const MEGABYTE = 1_024 * 1_024;

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { records } = store;
  const browse = (claim: TestClaim, options: { search?: string; offset?: number; limit?: number } = {}) =>
    records.browse(claim.instanceId, claim.resource, { offset: 0, limit: 50, ...options });
  const idsOf = ({ records: found }: { records: { id: string }[] }) => found.map(({ id }) => id);
  const found = async (claim: TestClaim, search: string) => idsOf(await browse(claim, { search }));
  const streamed = async (claim: TestClaim, search = '') => {
    const all = await collect(records.stream(claim.instanceId, claim.resource, { search }));
    return all.map(({ document }) => document);
  };

  test('live records are browsed in pages, in the order in which they came', async () => {
    const first = await store.copy(['{"id":"c"}', '{"id":"a"}', '{"id":"b"}', '{"id":"d"}']);
    const claim = await store.claimRun(first);
    await store.write(claim, ['{"id":"d","n":1}', '{"id":"c"}', '{"id":"b"}']);
    await store.markUnseen(claim);
    const page = await browse(claim);
    expect([idsOf(page), page.total, page.hasMore]).toEqual([['c', 'b', 'd'], 3, false]);
    expect(page.records[2]).toMatchObject({ document: '{"id":"d","n":1}', isCut: false, deletedAt: null });
    expect(idsOf(await browse(claim, { offset: 1, limit: 1 }))).toEqual(['b']);
    expect(idsOf(await browse(claim, { offset: 3 }))).toEqual([]);
  });

  test('a record is found by its id, unless it is erased', async () => {
    const claim = await store.copy(['{"id":"a"}', '{"id":7}']);
    expect(await records.find(claim.instanceId, 'contacts', '#7')).toMatchObject({ document: '{"id":7}' });
    expect(await records.find(claim.instanceId, 'contacts', '7')).toBeUndefined();
    const second = await store.claimRun(claim);
    await store.write(second, ['{"id":7}']);
    await store.markUnseen(second);
    expect(await records.find(claim.instanceId, 'contacts', 'a')).toMatchObject({ deletedAt: NOW });
    await store.db
      .updateTable('records')
      .set({ erased_at: NOW, document: null, hash: null })
      .where('list', '=', claim.list)
      .where('external_id', '=', 'a')
      .execute();
    expect(await records.find(claim.instanceId, 'contacts', 'a')).toBeUndefined();
  });

  test('a page has the beginning of a large document, and the stream has all', async () => {
    const large = `{"id":"big","x":"${'ł'.repeat(MEGABYTE)}"}`;
    const claim = await store.copy([large, '{"id":"small"}']);
    const [big, small] = (await browse(claim)).records;
    expect(big).toMatchObject({ id: 'big', isCut: true });
    expect([big?.document?.length, large.startsWith(big?.document ?? '-')]).toEqual([100_000, true]);
    expect(small).toMatchObject({ document: '{"id":"small"}', isCut: false });
    const [whole, other] = await streamed(claim);
    expect([whole === large, other]).toEqual([true, '{"id":"small"}']);
  });

  test('a stream has every live document once, in portions', async () => {
    const documents = documentsOf(700);
    const claim = await store.copy(documents);
    const second = await store.claimRun(claim);
    await store.write(second, documents.slice(0, 600));
    await store.markUnseen(second);
    expect(await streamed(claim)).toEqual(documents.slice(0, 600));
  });

  test('a stream has all records that a search finds', async () => {
    const names = ['Ada', 'Grace', 'Ada', 'Adam'].map((name, n) => `{"id":"${n}","name":"${name}"}`);
    const more = Array.from({ length: 300 }, (_, n) => `{"id":"m${n}","name":"Ada"}`);
    const claim = await store.copy([...names, ...more]);
    await store.index(claim);
    const all = await collect(records.stream(claim.instanceId, 'contacts', { search: ' ada ' }));
    expect(all).toHaveLength(303);
    expect(all[1]).toEqual({ id: '2', document: names[2], updatedAt: expect.any(Number) });
    expect(await streamed(claim, 'adam')).toEqual([names[3]]);
    expect([await streamed(claim, 'nobody'), await streamed(claim, '!?')]).toEqual([[], []]);
  });

  test('a stream fails when the copy is removed, even if a new one replaces it', async () => {
    const claim = await store.copy(documentsOf(300, 'old-'));
    const stream = records.stream(claim.instanceId, 'contacts')[Symbol.asyncIterator]();
    expect((await stream.next()).value).toMatchObject({ id: 'old-0' });
    await store.tokens.disconnect(claim.instanceId, { deleteData: true });
    await store.addInstance(claim.instanceId);
    await store.copy(documentsOf(300, 'new-'), claim);
    const rest = async () => {
      while (!(await stream.next()).done);
    };
    await expect(rest()).rejects.toThrow(CopyRemovedError);
  });

  test('a search finds what the index knows, and counts what it lacks', async () => {
    const claim = await store.copy(['{"id":"a","name":"Ada Lovelace"}', '{"id":"b","name":"Grace Hopper"}']);
    expect(await browse(claim, { search: 'ada' })).toMatchObject({ records: [], total: 0, pending: 2 });
    await store.index(claim);
    expect(await browse(claim, { search: 'ada love' })).toMatchObject({ total: 1, pending: 0 });
    expect(await found(claim, 'hop grace')).toEqual(['b']);
    expect(await found(claim, 'ada hopper')).toEqual([]);
  });

  test('a search finds the newest text, and no deleted record', async () => {
    const claim = await store.copy(['{"id":"a","name":"Ada"}', '{"id":"b","name":"Bob"}']);
    await store.index(claim);
    const second = await store.claimRun(claim);
    await store.write(second, ['{"id":"a","name":"Eve"}']);
    await store.markUnseen(second);
    expect(await found(claim, 'bob')).toEqual([]);
    await store.index(claim);
    expect([await found(claim, 'ada'), await found(claim, 'eve')]).toEqual([[], ['a']]);
  });

  test('a search finds words of its own list alone', async () => {
    const [one, two] = [
      await store.copy(['{"id":"1","x":"same"}']),
      await store.copy(['{"id":"2","x":"same"}']),
    ];
    for (const claim of [one, two]) await store.index(claim);
    expect([await found(one, 'same'), await found(two, 'same')]).toEqual([['1'], ['2']]);
  });

  test('a search leaves out the ninth word, and odd input does no harm', async () => {
    const claim = await store.copy(['{"id":"a","x":"one two three four five six seven eight nine"}']);
    await store.index(claim);
    const page = await browse(claim, { search: 'one two three four five six seven eight missing' });
    expect([idsOf(page), page.isShortened]).toEqual([['a'], true]);
    for (const typed of [
      '"',
      "'; drop table records",
      '*',
      'one OR',
      '(',
      '\\',
      ':*',
      '&',
      '!no',
      '\u0000',
      '😀',
    ])
      expect(await found(claim, typed), typed).toEqual([]);
    expect(await found(claim, 'one:* & two')).toEqual(['a']);
  });

  if (kind === 'postgres') {
    test('words of any frequency are found in a large list, in order and from anywhere', async () => {
      const { db } = await openTestStore(kind);
      const [large, list, other] = [150_000, 77, 78];
      const words = sql`('''all'':1' || case when g % 30 = 0 then ' ''some'':2' else '' end
        || case when g > ${sql.lit(large - 9)} then ' ''late'':3' else '' end
        || case when g <= 40000 then ' ''early'':4' else '' end)::tsvector`;
      await sql`insert into search select g, ${words} from generate_series(1, ${sql.lit(large)}) g`.execute(
        db,
      );
      const owner = sql`case when g % 3 = 0 then ${sql.lit(other)} else ${sql.lit(list)} end`;
      await sql`insert into seen select ${owner}, g, 1 from generate_series(1, ${sql.lit(large)}) g`.execute(
        db,
      );
      const all = Array.from({ length: large }, (_, n) => n + 1);
      const matching = {
        all,
        early: all.slice(0, 40_000),
        some: all.filter((id) => id % 30 === 0),
        late: all.slice(-9),
        none: [],
      };
      for (const [word, ids] of Object.entries(matching)) {
        for (const [from, after, limit] of [
          [list, 0, 7],
          [list, 0, 30_000],
          [list, 0, 26_670],
          [other, 0, 3_000],
          [list, 60_000, large],
          [list, large, 5],
        ] as const) {
          const own = ids.filter((id) => (id % 3 === 0) === (from === other) && id > after);
          const groups = [[{ words: [word], isBeginning: false }]];
          const found = await db.dialect.search.find(db, from, groups, { after, limit });
          expect(found, `${word} of ${from}: ${limit} after ${after}`).toEqual(own.slice(0, limit));
        }
      }
    });
  }
});
