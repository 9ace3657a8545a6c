import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { readItems } from '../../src/store/page-items.ts';
import {
  DATABASES,
  documentsOf,
  INTERVAL_MS,
  NOW,
  openTestStore,
  type TestClaim,
  type TestStore,
} from './test-store.ts';

const KNOWN = ['{"id":"a"}', '{"id":"b"}', '{"id":"c"}'];
const NEXT = { check_due_at: NOW + 60_000, check_every: 1, check_after: 0, ran_out: 0 };
const ALONE = { isInRun: false, isUnsure: false };
const FOUND = {
  ...{ pages: 3, records: 9, created: 2, changed: 2, rejected: 1, requests: 4, refused: 1 },
  ...{ started_at: NOW + 1, finished_at: NOW + 5 },
};
const read = (...texts: string[]) => readItems(texts);

/** Claims the check of a list whose full run has seen these documents. */
async function claimCheck(store: TestStore, documents = KNOWN): Promise<TestClaim> {
  const full = await store.claimRun();
  await store.write(full, documents);
  await store.finish(full, { check_due_at: NOW });
  const { claim } = (await store.runs.claim(full, NOW)) ?? expect.unreachable();
  return { ...full, ...claim };
}

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { pages, runs } = store;
  const checksOf = ({ list }: TestClaim) => runs.history(list, 'check', 99);

  test('a check writes in the order of its items, and has a row if it found a change', async () => {
    const claim = await claimCheck(store);
    const { change_seq } = await store.list(claim);
    const commit = (...texts: string[]) => pages.commitCheck(claim, read(...texts), undefined, NOW);
    expect(await commit('{"id":"a"}', '7')).toMatchObject({ created: 0, changed: 0 });
    const news = await commit('{"id":"z"}', '{"id":"b","n":2}', '{"id":"c"}', '{"id":"y"}');
    expect(news).toMatchObject({ created: 2, changed: 1 });
    expect(await commit('{"id":"a","n":2}')).toMatchObject({ created: 0, changed: 1 });
    const told = (await store.feed(claim.list, change_seq)).map(({ id, change }) => `${id} ${change}`);
    expect(told).toEqual(['z created', 'b changed', 'y created', 'a changed']);
    expect([claim, await store.list(claim)]).toMatchObject([
      { commits: 3 },
      { stored: 5, caught: 4, commits: 3 },
    ]);
    expect(await runs.endCheck(claim, ALONE, NEXT)).toBe(true);
    expect(await checksOf(claim)).toEqual([]);
    expect(await runs.endCheck(claim, { ...ALONE, found: FOUND }, NEXT)).toBe(true);
    expect(await checksOf(claim)).toMatchObject([{ ...FOUND, kind: 'check', state: 'finished' }]);
  });

  test('a check leaves the counts and the state of the full run alone', async () => {
    const claim = await store.claimRun(await claimCheck(store));
    await store.write(claim, ['{"id":"a"}'], { next: 'https://x.example/2' });
    const { run: before } = await store.list(claim);
    await pages.commitCheck(claim, read('{"id":"b"}', '{"id":"z"}'), undefined, NOW);
    await runs.endCheck(claim, { isInRun: true, isUnsure: false }, NEXT);
    expect((await store.list(claim)).run).toEqual(before);
    // It deletes nothing if the check ran out, even if that has no end.
    await pages.commitCheck(claim, read('{"id":"b"}'), NOW, NOW);
    expect((await store.list(claim)).run).toEqual({ ...before, is_unsure: 1 });
    // And the run goes on.
    expect(await store.write(claim, ['{"id":"c"}'])).toMatchObject({ id: claim.run, pages: 2 });
  });

  test('a check notes records as seen that the full run has missed', async () => {
    const first = await claimCheck(store);
    const last = await store.copy(['{"id":"a"}'], first);
    const open = await store.claimRun(first);
    const missed = async () => (await store.deletions.findUnseen(open.list, last.run, 9)).count;
    expect(await missed()).toBe(2);
    await pages.commitCheck({ ...open, run: last.run }, read('{"id":"b"}'), undefined, NOW);
    expect(await missed()).toBe(1);
    const { fence, commits } = await store.list(first);
    await pages.commitCheck({ ...open, fence, commits }, read('{"id":"b"}', '{"id":"c"}'), undefined, NOW);
    expect(await missed()).toBe(0);
    const { oldest } = await store.deletions.findUnseen(open.list, open.run, 9);
    expect(oldest).toMatchObject([{ externalId: 'a' }]);
    expect(await checksOf(first)).toEqual([]);
  });

  test('the last fifty runs and the last fifty checks of a list are kept', async () => {
    const claim = await claimCheck(store);
    for (let n = 0; n < 53; n++) await runs.endCheck(claim, { ...ALONE, found: FOUND }, NEXT);
    const [checks, full] = [await checksOf(claim), await runs.history(claim.list, 'full', 99)];
    expect([checks.length, full.map(({ id }) => id)]).toEqual([50, [claim.run]]);
    let last = claim;
    for (let n = 0; n < 53; n++) last = await store.copy([], claim);
    const history = await runs.history(claim.list, 'full', 99);
    expect([history.length, history[0]?.id]).toEqual([50, last.run]);
    expect(await runs.history(claim.list, 'full', 2)).toEqual(history.slice(0, 2));
    expect(await checksOf(claim)).toEqual(checks);
  });

  test.each([
    ['at once', NOW + 5, NOW + 5],
    ['not later than it was', NOW + INTERVAL_MS + 1, NOW + INTERVAL_MS],
    ['as it was', undefined, NOW + INTERVAL_MS],
  ])('the first commit of a check makes a full run due: %s', async (_what, fullDueAt, full_due_at) => {
    const claim = await claimCheck(store);
    await pages.commitCheck(claim, read('{"id":"a"}'), fullDueAt, NOW);
    expect(await store.list(claim)).toMatchObject({ full_due_at });
    await runs.endCheck(claim, ALONE, { ...NEXT, check_due_at: null });
    expect(await store.list(claim)).toMatchObject({ full_due_at, due_at: full_due_at });
  });

  describe('news is', () => {
    const documents = ['known', 'missed', 'erased', 'deleted', 'gone'].map((id) => `{"id":"${id}"}`);
    const [known = '', missed = '', erased = '', deleted = ''] = documents;
    async function open() {
      const first = await store.copy(documents);
      const second = await store.claimRun(first);
      await store.write(second, [known, missed, erased]);
      await store.markUnseen(second);
      await store.finish(second);
      const third = await store.copy([known, erased], first);
      await store.erasure.erase(first.list, 'erased', NOW);
      await store.erasure.erase(first.list, 'gone', NOW);
      return third;
    }
    test.each([
      ['a new record', true, [known, '{"id":"new"}']],
      ['a changed record', true, ['{"id":"known","n":2}']],
      ['a record that came back', true, [deleted]],
      ['a record that the full run has not seen', true, [known, missed]],
      ['not a known record', false, [known]],
      ['not an erased record, even in another form', false, [erased, '{"id":"gone","n":2}', known]],
      ['not a rejected record', false, ['7', '{"id":"known"', known]],
      ['not an empty page', false, []],
    ])('%s', async (_what, isNews, texts) => {
      expect(await pages.hasNews(await open(), read(...texts))).toBe(isNews);
    });
  });
});

test('a check that finds nothing changes two rows', async () => {
  const store = await openTestStore('sqlite');
  const { list, ...key } = await claimCheck(store, documentsOf(200));
  const changed = async () => {
    const { rows } = await sql<{ count: number }>`select total_changes() as count`.execute(store.db);
    return rows[0]?.count ?? Number.NaN;
  };
  const before = await changed();
  const { claim } = (await store.runs.claim(key, NOW)) ?? expect.unreachable();
  expect(await store.pages.hasNews(claim, read(...documentsOf(100)))).toBe(false);
  expect(await store.runs.endCheck(claim, ALONE, NEXT)).toBe(true);
  expect((await changed()) - before).toBe(2);
  // A page of known records behind others with news changes the commit counter alone.
  const again = { ...claim };
  expect(await store.pages.commitCheck(again, read(...documentsOf(100)), undefined, NOW)).toBeDefined();
  expect((await changed()) - before).toBe(3);
});
