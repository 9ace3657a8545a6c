import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { makeFirstSchema } from './first-schema.ts';
import { openTestStore, pageOf } from './test-store.ts';

const KEY = { instance_id: 'ins_1', resource: 'contacts' };

test('ids of a copy from before that are numbers are told from texts, and nothing looks new or changed for it', async () => {
  const path = `${tempDir()}/app.db`;
  const documents = [
    ['7', '{"id":7}'],
    ['-7', '{"n":1.0,"id":-7}'],
    ['8', '{"id":"8"}'],
    ['9x', '{"id":"9x"}'],
    ['#7', '{"id":"#7"}'],
    ['##7', '{"id":"##7"}'],
    ['#', '{"id":"#"}'],
    ['12345678901234567890', '{"id":12345678901234567890}'],
  ];
  await makeFirstSchema(
    path,
    documents.map(([id = '', document = '']) => ({ id, document, generation: 1 })),
  );
  const store = await openTestStore(path);
  const page = pageOf([...documents.map(([, document = '']) => document), '{"id":"7"}', '{"id":8}']);
  expect(await store.pages.compare(KEY, page)).toMatchObject({
    created: [documents.length, documents.length + 1],
    changed: [],
    unusable: [],
  });
});

test('records of a copy from before whose documents are damaged keep their ids, and no other from its own', async () => {
  const path = `${tempDir()}/app.db`;
  const documents = [
    ['17', '{"id":17,"name":"damag'],
    ['18', ''],
    ['19', 'null'],
    ['20', '{"id":20}'],
    ['a-record', '{"id":"a-rec'],
  ];
  await makeFirstSchema(
    path,
    documents.map(([id = '', document = '']) => ({ id, document, generation: 1 })),
  );
  const store = await openTestStore(path);
  const { records } = await store.records.browse('ins_1', 'contacts', { offset: 0, limit: 10 });
  expect(records.map(({ id }) => id)).toEqual(['17', '18', '19', '#20', 'a-record']);
  expect(records.map(({ document }) => document)).toEqual(documents.map(([, document]) => document));
});

test('of several ids in a document the last one counts, also where the first is a number in front', async () => {
  const store = await openTestStore();
  const { claim } = await store.claimRun();
  await store.write(claim, [
    '{"id":1,"name":"Ann"}',
    '{"id":1,"name":"Bob","id":8}',
    String.raw`{"id":2,"name":"Cleo","\u0069d":9}`,
    '{"id":3,"id":3.5}',
    '{"id":4,"id":"4"}',
  ]);
  const rows = await store.db.selectFrom('records').select(['id', 'document']).orderBy('id').execute();
  expect(rows.map(({ id }) => id)).toEqual(['#1', '#8', '#9', '4']);
  expect(rows[0]?.document).toBe('{"id":1,"name":"Ann"}');
  expect(await store.runs.find(claim)).toMatchObject({ records: 4, skipped: 1 });
});
