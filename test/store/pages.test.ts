import { expect, test } from 'vitest';
import { assumeNew, KnownRecordError } from '../../src/store/pages.ts';
import { NOW, openTestStore, pageOf } from './test-store.ts';

const store = await openTestStore();
const { pages, records } = store;

test.each([
  ['integers beyond 2^53', '{"id":"1","n":12345678901234567890}'],
  ['fractions that say no more', '{"id":"1","n":1.0,"m":1.50,"e":1E+2}'],
  ['names in their order, and twice', '{"z":1,"id":"1","a":2,"10":3,"9":4,"z":5}'],
  ['escapes', String.raw`{"id":"1","s":"\u00e9\/\n\t\"\\ \ud83d\ude00"}`],
  ['half of a pair', String.raw`{"id":"1","s":"\ud83d"}`],
  ['unicode', '{"id":"1","s":"Zoë \u{1f511} \u202e مرحبا"}'],
  ['nested values', '{"id":"1","a":[{},[],null,true,false,-0.0,{"b":[1,2]}],"_links":{"self":"x"}}'],
  ['SQL', `{"id":"1","s":"'); drop table records; --"}`],
  ['a long text', `{"id":"1","s":"${'x'.repeat(200_000)}"}`],
])('a document is kept to the letter: %s', async (_what, document) => {
  const { claim } = await store.claimRun();
  await store.write(claim, [document]);
  for await (const kept of records.stream(claim.instanceId, 'contacts')) expect(kept).toBe(document);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(1);
});

test('space between the parts of a document goes, the rest stays: it is one line', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{\n  "id" : "1",\r\n\t"s": "a  b",  "n": 1.0 }']);
  expect((await records.find(claim.instanceId, 'contacts', '1'))?.document).toBe(
    '{"id":"1","s":"a  b","n":1.0}',
  );
});

test('integers of any size are ids, too, and others than the same digits as text', async () => {
  const { claim } = await store.claimRun();
  const ids = ['7', '-7', '9007199254740993', '12345678901234567890', '12345678901234567891'];
  await store.write(
    claim,
    [...ids, ...ids.map((id) => JSON.stringify(id))].map((id) => `{"id":${id}}`),
  );
  for (const id of ids) {
    const find = async (key: string) => (await records.find(claim.instanceId, 'contacts', key))?.document;
    expect(await find(`#${id}`)).toBe(`{"id":${id}}`);
    expect(await find(id)).toBe(`{"id":"${id}"}`);
  }
});

test('ids of every kind of text are told apart', async () => {
  const { claim } = await store.claimRun();
  const ids = [
    'a',
    'A',
    ' a',
    'a ',
    'é',
    'e\u0301',
    '%',
    "'",
    '"',
    '\\',
    '\n',
    '0',
    '00',
    '1e2',
    '\u{1f511}',
  ];
  await store.write(
    claim,
    ids.map((id) => JSON.stringify({ id })),
  );
  expect(await store.count(claim.instanceId, 'contacts')).toBe(ids.length);
  for (const id of ids) expect((await records.find(claim.instanceId, 'contacts', id))?.id).toBe(id);
});

test('what has no usable id is left out and counted; the rest goes in', async () => {
  const { run, claim } = await store.claimRun();
  const documents = [
    '{"id":"1"}',
    '{}',
    '{"id":null}',
    '{"id":""}',
    '{"id":1.5}',
    '{"id":{}}',
    '{"id":true}',
    '7',
    'null',
    '"x"',
    '[{"id":"9"}]',
    '{"id":"2"}',
  ];
  const page = pageOf(documents);
  const changes = await pages.compare(run, page);
  expect(changes).toMatchObject({ created: [0, 11], changed: [], records: 2 });
  expect(changes.unusable.length).toBe(10);
  await pages.commit(claim, page, changes, NOW);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(2);
  expect(await store.runs.find(claim)).toMatchObject({ records: 2, skipped: 10 });
});

test('of a record that is twice on a page, the last one stays', async () => {
  const { claim } = await store.claimRun();
  expect(await store.write(claim, ['{"id":"1","n":1}', '{"id":"2"}', '{"id":"1","n":2}'])).toMatchObject({
    pages: 1,
  });
  expect((await records.find(claim.instanceId, 'contacts', '1'))?.document).toBe('{"id":"1","n":2}');
  expect(await store.count(claim.instanceId, 'contacts')).toBe(2);
});

test('what is new, what differs, and what is the same', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"same","n":1.0}', '{"id":"differs","n":1}', '{"id":"back"}'], {
    now: NOW,
  });
  await store.remove(claim, ['back'], NOW + 1);
  const run = await store.runs.find(claim);
  if (run === undefined) throw new Error('no run');
  const documents = ['{"id":"new"}', '{"id":"differs","n":2}', '{"id":"same", "n":1.0}', '{"id":"back"}'];
  const page = pageOf(documents);
  const changes = await pages.compare(run, page);
  expect(changes).toMatchObject({ created: [0, 3], changed: [1], unusable: [], records: 4 });

  await pages.commit(claim, page, changes, NOW + 10);
  const find = (id: string) => records.find(claim.instanceId, 'contacts', id);
  expect(await find('same')).toMatchObject({ updatedAt: NOW });
  expect(await find('differs')).toMatchObject({ updatedAt: NOW + 10, document: '{"id":"differs","n":2}' });
  expect(await find('new')).toMatchObject({ updatedAt: NOW + 10 });
  expect(await find('back')).toMatchObject({ updatedAt: NOW + 10, deletedAt: null });
});

test('a page that is assumed to be new changes what a comparison with an empty copy says', async () => {
  const { run, claim } = await store.claimRun();
  const page = pageOf(['{"id":"1"}', '{}', '{"id":"2","n":1}', '{"id":"2","n":2}', '{"id":3}']);
  const changes = assumeNew(page);
  expect(changes).toEqual(await pages.compare(run, page));
  expect(changes).toMatchObject({ created: [0, 3, 4], records: 4 });
  expect(await pages.commit(claim, page, changes, NOW)).toMatchObject({ pages: 1, records: 4, stored: 3 });
  expect(await store.count(claim.instanceId, 'contacts')).toBe(3);
});

test.each(['live', 'deleted'])(
  'nothing is written of a page that was wrongly assumed to be new: one is there, %s',
  async (how) => {
    const { claim } = await store.claimRun();
    await store.write(claim, ['{"id":"known","n":1}']);
    if (how === 'deleted') await store.remove(claim, ['known'], NOW + 1);
    const before = await store.runs.find(claim);
    const page = pageOf(['{"id":"new"}', '{"id":"known","n":2}']);
    await expect(pages.commit(claim, page, assumeNew(page), NOW + 2)).rejects.toThrow(KnownRecordError);
    expect(await store.runs.find(claim)).toEqual(before);
    expect(await records.find(claim.instanceId, 'contacts', 'new')).toBeUndefined();
    expect((await records.find(claim.instanceId, 'contacts', 'known'))?.document).toBe(
      '{"id":"known","n":1}',
    );
  },
);

test('a comparison writes nothing', async () => {
  const { run, claim } = await store.claimRun();
  await pages.compare(run, pageOf(['{"id":"1"}']));
  expect(await store.count(claim.instanceId, 'contacts')).toBe(0);
});

test('the same ids of other resources and other instances are other records', async () => {
  const { claim } = await store.claimRun();
  const other = await store.claimRun({ ...claim, resource: 'conversations' });
  const stranger = await store.claimRun();
  await store.write(claim, ['{"id":"1","of":"contacts"}']);
  await store.write(other.claim, ['{"id":"1","of":"conversations"}']);
  await store.write(stranger.claim, ['{"id":"1","of":"another"}']);
  expect((await records.find(claim.instanceId, 'contacts', '1'))?.document).toContain('"contacts"');
  expect((await records.find(claim.instanceId, 'conversations', '1'))?.document).toContain('"conversations"');
  expect((await records.find(stranger.claim.instanceId, 'contacts', '1'))?.document).toContain('"another"');
});

test('a page moves the cursor; the last one ends the pages', async () => {
  const { claim } = await store.claimRun();
  await store.runs.wait(claim, { for: 'retry', until: NOW, attempt: 3, error: 'no answer' });
  const first = await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  expect(first).toMatchObject({
    cursor: 'https://x.example/p2',
    phase: 'pages',
    pages: 1,
    records: 1,
    attempt: 0,
    error: null,
  });
  const empty = await store.write(claim, [], { next: 'https://x.example/p3' });
  expect(empty).toMatchObject({ cursor: 'https://x.example/p3', phase: 'pages', pages: 2, records: 1 });
  expect(await store.write(claim, ['{"id":"2"}'])).toMatchObject({
    cursor: null,
    phase: 'deletions',
    pages: 3,
    records: 2,
  });
});

test('records and cursor go in together or not at all', async () => {
  const { run, claim } = await store.claimRun();
  const page = pageOf(['{"id":"2"}', '{"id":"1"}'], 'https://x.example/p3');
  const changes = await pages.compare(run, page);
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  const before = await store.runs.find(claim);
  // Compared too early: the second record has come in since.
  await expect(pages.commit(claim, page, changes, NOW)).rejects.toThrow(KnownRecordError);
  expect(await store.runs.find(claim)).toEqual(before);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(1);
});

test.each(['paused', 'needs_reauthorization', 'disconnected'] as const)(
  'nothing is written for an instance that is %s by now',
  async (status) => {
    const { claim } = await store.claimRun();
    const before = await store.runs.find(claim);
    await store.instances.setStatus(claim.instanceId, status, { from: ['active'] });
    expect(await store.write(claim, ['{"id":"1"}'])).toBeUndefined();
    expect(await store.deletions.mark(claim, [1], NOW)).toBe(false);
    expect(await store.runs.find(claim)).toEqual(before);
    expect(await store.count(claim.instanceId, 'contacts')).toBe(0);
  },
);
