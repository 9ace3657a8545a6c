import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { makeFirstSchema, type OldRecord } from './first-schema.ts';
import { openTestStore, pageOf } from './test-store.ts';

const KEY = { instanceId: 'ins_1', resource: 'contacts' };

const RECORDS: OldRecord[] = [
  { id: 'seen1', document: '{"id":"seen1","name":"Ada"}', generation: 2 },
  { id: 'late', document: '{"id":"late","n":1.0}', generation: 1 },
  { id: 'seen2', document: '{"id":"seen2"}', generation: 2 },
  { id: 'seen3', document: '{"id":"seen3"}', generation: 2 },
  { id: 'gone', document: '{"id":"gone"}', generation: 1, deletedAt: 5 },
  { id: 'vanished', document: '{"id":"vanished"}', generation: 1 },
];

async function open(records: readonly OldRecord[]) {
  const path = `${tempDir()}/app.db`;
  await makeFirstSchema(path, records);
  return openTestStore(path);
}

test('a run that was under way goes on, and deletes nothing that it had seen', async () => {
  const store = await open(RECORDS);
  const run = await store.runs.claim(KEY);
  const claim = { ...KEY, fence: run?.fence ?? 0 };
  expect(run).toMatchObject({ cursor: 'https://x.example/p2', pages: 1, stored: 5 });
  await store.write(claim, ['{"id":"late","n":1.0}']);
  const { records, after } = await store.deletions.unseen(claim, 0, 10);
  expect(records.map(({ document }) => document)).toEqual(['{"id":"vanished"}']);
  expect(after).toBeNull();
});

test('what did not change is known to be the same; what changed, differs', async () => {
  const store = await open(RECORDS);
  const changes = await store.pages.compare(
    { instance_id: 'ins_1', resource: 'contacts' },
    pageOf(['{"id":"late","n":1.0}', '{"id":"seen1"}', '{"id":"gone"}', '{"id":"new"}']),
  );
  expect(changes).toMatchObject({ created: [2, 3], changed: [1] });
  const { records } = await store.records.browse('ins_1', 'contacts', { offset: 0, limit: 10 });
  expect(records.map(({ document }) => document)).toEqual(
    RECORDS.filter(({ deletedAt }) => deletedAt === undefined).map(({ document }) => document),
  );
  expect(await store.records.find('ins_1', 'contacts', 'gone')).toMatchObject({ deletedAt: 5, updatedAt: 7 });
});

test('a run that had ended begins anew having seen nothing', async () => {
  const store = await open(RECORDS);
  const key = { ...KEY, resource: 'conversations' };
  expect(await store.runs.find(key)).toMatchObject({ state: 'idle', stored: 5, fence: 4 });
  const seen = store.db.selectFrom('seen_ranges').innerJoin('runs', 'runs.list', 'seen_ranges.list');
  expect(await seen.select('resource').distinct().execute()).toEqual([{ resource: 'contacts' }]);
});

test('everything becomes searchable; more records than are read at a time', async () => {
  const many = Array.from({ length: 1_234 }, (_, n): OldRecord => {
    return { id: `r${n}`, document: `{"id":"r${n}","word":"w${n % 7}"}`, generation: n % 2 === 0 ? 2 : 1 };
  });
  const store = await open(many);
  const search = async () => store.records.browse('ins_1', 'contacts', { search: 'w3', offset: 0, limit: 5 });
  expect(await search()).toMatchObject({ total: 0, pending: 1_234 });
  await store.index();
  expect(await search()).toMatchObject({ total: 176, pending: 0 });
  expect(await store.runs.find(KEY)).toMatchObject({ stored: 1_234 });
  const { claim } = await store.claimRun(KEY);
  let unseen = 0;
  for (let after: number | null = 0; after !== null; ) {
    const portion = await store.deletions.unseen(claim, after, 500);
    unseen += portion.records.length;
    after = portion.after;
  }
  expect(unseen).toBe(617);
});
