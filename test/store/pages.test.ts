import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, NOW, openTestStore, pageOf, type TestClaim } from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { db, records } = store;

  /** What the feed says of a list, each record by its newest form. */
  async function changesOf({ list }: TestClaim, after = 0) {
    return (await store.feed(list, after)).map(({ id, change, document }) => [id, change, document]);
  }
  const lastSeq = async (claim: TestClaim) => (await store.list(claim)).change_seq;
  const again = async (claim: TestClaim) => {
    await store.finish(claim);
    return store.claimRun(claim);
  };

  test('the first page creates its records as they came, and notes the next page', async () => {
    const claim = await store.claimRun();
    const documents = ['{"id":"a","n":1.50}', '{"id":"b","name":"Ł 😀"}'];
    expect(await store.write(claim, documents, { next: PAGE_2 })).toMatchObject({
      state: 'running',
      cursor: PAGE_2,
      pages: 1,
      records: 2,
      seen: 2,
      created: 2,
      changed: 0,
      requests: 1,
    });
    expect(await changesOf(claim)).toEqual([
      ['a', 'created', documents[0]],
      ['b', 'created', documents[1]],
    ]);
    expect(await store.list(claim)).toMatchObject({ stored: 2 });
  });

  test('a page writes only the records that changed', async () => {
    const first = await store.copy(['{"id":"a"}', '{"id":"b"}', '{"id":"c"}']);
    const before = await lastSeq(first);
    const second = await store.claimRun(first);
    const unchanged = await store.pages.commit(
      second,
      null,
      pageOf(['{"id":"a"}', '{"id":"c"}'], PAGE_2),
      NOW,
      20,
    );
    expect(unchanged).toMatchObject({ hasChanges: false, run: { seen: 2, created: 0, changed: 0 } });
    expect(await lastSeq(first)).toBe(before);
    expect(await store.write(second, ['{"id":"b","x":1}'])).toMatchObject({ seen: 3, changed: 1 });
    expect(await changesOf(first, before)).toEqual([['b', 'changed', '{"id":"b","x":1}']]);
    expect(await store.list(first)).toMatchObject({ stored: 3 });
  });

  test.each([
    ['not up to the first page without a change', [3, 2], 20, null],
    ['behind the first page without a change', [3, 0, 2, 0, 1], 20, 3],
    ['none that a check would have seen', [2, 0], 20, 0],
    ['behind the pages of a check', [1, 1, 2, 1], 2, 3],
  ])('a run counts changes as behind its head: %s', async (_what, pages, mostHeadPages, behind) => {
    const claim = await store.claimRun();
    for (const [page, count] of pages.entries()) {
      const fetched = pageOf(documentsOf(count, `${page}-`), `${PAGE_2}${page}`);
      const from = page === 0 ? null : `${PAGE_2}${page - 1}`;
      await store.pages.commit(claim, from, fetched, NOW, mostHeadPages);
    }
    expect((await store.list(claim)).run).toMatchObject({ pages: pages.length, behind });
  });

  test('the last copy of a record on a page counts', async () => {
    const claim = await store.copy(['{"id":"a","n":1}', '{"id":"a","n":2}']);
    expect(await changesOf(claim)).toEqual([['a', 'created', '{"id":"a","n":2}']]);
    expect(await store.list(claim)).toMatchObject({ stored: 1, run: { records: 2, seen: 1, created: 1 } });
  });

  test('a deleted record that comes back is created again', async () => {
    const first = await store.copy(['{"id":"a"}', '{"id":"b"}']);
    const second = await store.claimRun(first);
    await store.write(second, ['{"id":"a"}']);
    expect(await store.markUnseen(second)).toBe(1);
    expect(await store.list(first)).toMatchObject({ stored: 1 });
    const deletedAt = await lastSeq(first);
    const third = await again(second);
    expect(await store.write(third, ['{"id":"a"}', '{"id":"b"}'])).toMatchObject({ created: 1, seen: 2 });
    expect(await changesOf(first, deletedAt)).toEqual([['b', 'created', '{"id":"b"}']]);
    expect(await store.list(first)).toMatchObject({ stored: 2 });
    expect(await records.find(first.instanceId, 'contacts', 'b')).toMatchObject({ deletedAt: null });
  });

  test('the beginning of a rejected record shows a NUL as a replacement character', async () => {
    const claim = await store.claimRun();
    await store.write(claim, ['"a\0b"'], { next: PAGE_2 });
    expect(await records.rejected(claim.list, 1)).toMatchObject([{ excerpt: '"a\ufffdb"' }]);
  });

  test('7, "7" and "#7" are three records', async () => {
    const documents = ['{"id":7}', '{"id":"7"}', '{"id":"#7"}', '{"id":12345678901234567890}'];
    const claim = await store.copy(documents);
    expect((await store.feed(claim.list)).map(({ id }) => id)).toEqual([
      '#7',
      '7',
      '##7',
      '#12345678901234567890',
    ]);
  });

  test('rejected records are counted, and a hundred of them are listed', async () => {
    const claim = await store.claimRun();
    const bad = Array.from({ length: 130 }, (_, n) => `{"no":${n},"x":"${'z'.repeat(600)}"}`);
    const run = await store.write(claim, [...bad, '{"id":"ok"}', '{"id":"a\\u0000b"}'], { next: PAGE_2 });
    expect(run).toMatchObject({ records: 1, created: 1, rejected: 131, unreadable: 130 });
    expect(await records.countRejected([claim.list])).toEqual(new Map([[claim.list, 100]]));
    const [one] = await records.rejected(claim.list, 1);
    expect(one).toMatchObject({ reason: 'It has no id.', at: NOW });
    expect(one?.excerpt).toHaveLength(Math.min(500, one?.length ?? 0));
    // A whole run later, what is good by then is listed no more.
    const second = await again(claim);
    await store.write(second, ['{"id":"ok"}', bad[5] ?? ''], { now: NOW + 9 });
    await store.finish(second);
    expect(await records.rejected(claim.list, 9)).toMatchObject([{ length: bad[5]?.length, at: NOW }]);
  });

  test('a record in broken JSON is rejected alone, and its older form stays', async () => {
    const claim = await store.copy(['{"id":"1"}', '{"id":"2"}', '{"id":"3"}']);
    const again = await store.claimRun(claim);
    const broken = ['{"id":"2","t":"a\nb"}', '{"id":9,"t":"\0"}', '{"n":NaN}', '{"id":"\ufffd"}'];
    const run = await store.write(again, ['{"id":"1"}', ...broken, '{"id":"3"}']);
    expect(run).toMatchObject({ records: 2, created: 0, changed: 0, rejected: 4, unreadable: 1 });
    expect(await store.markUnseen(again)).toBe(0);
    expect((await records.rejected(claim.list, 9)).map(({ reason }) => reason).sort()).toEqual([
      expect.stringMatching(/^It is no JSON, as record 2 of its page: Bad control character.*position 16/),
      expect.stringMatching(/^It is no JSON, as record 3 of its page: Bad control character/),
      expect.stringMatching(/^It is no JSON, as record 4 of its page: Unexpected token 'N'/),
      'Its id is no text in UTF-8.',
    ]);
  });

  test.each([
    ['that comes twice', ['{"t":1,"id":"z"}'], ['{"x":NaN,"y":{"id":"q"},"id":"z"}', '{"x":"\n","id":"z"}']],
    [
      'merged with another',
      ['{"id":"b"}', '{"id":"c"}'],
      ['{"id":"b","t":"5" wide"},{"id":"c","t":"6" wide"}'],
    ],
  ])('a record %s in broken JSON counts as seen', async (_how, good, broken) => {
    const claim = await store.copy(good);
    const next = await store.claimRun(claim);
    expect(await store.write(next, broken)).toMatchObject({ rejected: broken.length, unreadable: 1 });
    expect(await store.markUnseen(next)).toBe(0);
  });

  test.each<[string, (claim: TestClaim) => [TestClaim, string | null]]>([
    ['from another cursor', (claim) => [claim, `${PAGE_2}2`]],
    ['from the first page again', (claim) => [claim, null]],
  ])('a page %s writes nothing', async (_how, of) => {
    const claim = await store.claimRun();
    await store.write(claim, ['{"id":"a"}'], { next: PAGE_2 });
    const before = [await store.list(claim), await changesOf(claim)];
    const [late, from] = of(claim);
    expect(await store.write(late, ['{"id":"late"}', '7'], { from })).toBeUndefined();
    expect([await store.list(claim), await changesOf(claim)]).toEqual(before);
    expect(await records.countRejected([claim.list])).toEqual(new Map());
  });

  test('a page may have more records than one statement takes', async () => {
    const claim = await store.claimRun();
    const documents = documentsOf(1_200);
    expect(await store.write(claim, documents)).toMatchObject({ created: 1_200, seen: 1_200 });
    const feed = await store.feed(claim.list);
    expect(feed.map(({ document }) => document)).toEqual(documents);
    expect(new Set(feed.map(({ seq }) => seq)).size).toBe(1_200);
    expect(await lastSeq(claim)).toBe(feed.at(-1)?.seq);
    const second = await again(claim);
    expect(await store.write(second, documents)).toMatchObject({ created: 0, changed: 0, seen: 1_200 });
  });

  test('numbers rise, even after the copy was deleted and made anew', async () => {
    const first = await store.copy(documentsOf(1_000));
    const before = (await store.feed(first.list)).map(({ seq }) => seq);
    expect(before).toEqual(before.toSorted((a, b) => a - b));
    await store.tokens.disconnect(first.instanceId, { deleteData: true });
    await store.addInstance(first.instanceId);
    const second = await store.copy(documentsOf(1), first);
    const [oldest] = await store.feed(second.list);
    expect(oldest?.seq).toBeGreaterThan(before.at(-1) ?? Number.NaN);
  });

  test.each<[string, (id: string) => Promise<unknown>]>([
    ['pause', (id) => store.instances.setStatus(id, 'paused', { from: ['active'] })],
    ['disconnect', (id) => store.tokens.disconnect(id)],
  ])('a %s waits for the commit of a page, and nothing is written after it', async (_what, end) => {
    const claim = await store.copy(['{"id":"a"}']);
    const next = await store.claimRun(claim);
    let writing: ReturnType<typeof store.write> | undefined;
    let ending: Promise<unknown> | undefined;
    await db.transact(async (transaction) => {
      // Another transaction keeps the record for a moment, so that the page stands behind what it has checked.
      await sql`update records set deleted_at = null where list = ${claim.list}`.execute(transaction);
      writing = store.write(next, ['{"id":"a","n":2}'], { next: PAGE_2 });
      await store.waitForLocks(1);
      ending = end(claim.instanceId);
      await store.waitForLocks(2);
    });
    const [written] = await Promise.all([writing, ending]);
    const { run, fence } = await store.list(claim);
    // Behind the end of the list, the page would not be written.
    if (kind === 'postgres') expect(written).toMatchObject({ changed: 1 });
    expect(run?.state).not.toBe('running');
    expect(fence).toBe(next.fence + 1);
  });
});
