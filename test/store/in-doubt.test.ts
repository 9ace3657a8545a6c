import { expect, test } from 'vitest';
import { NOW, openTestStore, pageOf } from './test-store.ts';

const store = await openTestStore();
const { deletions, inDoubt, pages, parked, records, runs } = store;
const next = 'https://x.example/p2';
const PARKING = { error: 'Not these.', tries: 5 };

/** A run that has written these documents, and is at its first page again. */
async function secondRun(documents: string[]) {
  const { claim: first } = await store.claimRun();
  await store.write(first, documents);
  await runs.finish(first, NOW);
  const { claim } = await store.claimRun(first);
  const key = { instance_id: claim.instanceId, resource: claim.resource };
  const compare = async (texts: string[]) => {
    const { created, changed } = await pages.compare(key, pageOf(texts));
    return { created, changed };
  };
  return { claim, key, compare };
}

const untold = { created: [], changed: [] };

test('a record in doubt is told again when a page brings it as the copy has it, until that page is written', async () => {
  const documents = ['{"id":"told as gone"}', '{"id":"told as changed"}', '{"id":"untold"}'];
  const { claim, compare } = await secondRun(documents);
  expect(await compare(documents)).toEqual(untold);
  const ids = { comeOrGone: ['told as gone'], changed: ['told as changed'] };
  expect(await inDoubt.note(claim, ids)).toBe(true);
  expect(await compare(documents)).toEqual({ created: [0], changed: [1] });
  // A later change does not say that it was taken when it was new.
  await inDoubt.note(claim, { comeOrGone: [], changed: ['told as gone'] });
  expect(await compare(documents)).toEqual({ created: [0], changed: [1] });
  expect(await store.write(claim, documents, { next })).toMatchObject({ stored: 3, deleted: 0 });
  expect(await compare(documents)).toEqual(untold);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(3);
});

test('a note counts a try, whether anybody sees its end or not, until the batch is written; who has lost the run counts none', async () => {
  const { claim: old } = await secondRun(['{"id":"a"}']);
  const ids = { comeOrGone: ['a'], changed: [] };
  const tries = async () => (await runs.find(old))?.own_tries;
  await inDoubt.note(old, ids);
  const { fence = 0, own_tries } = (await runs.claim(old)) ?? {};
  expect(own_tries).toBe(1);
  const claim = { ...old, fence };
  await inDoubt.note(claim, ids);
  await inDoubt.note(old, ids);
  expect(await tries()).toBe(2);
  expect(await runs.setOwnTries(old, 0)).toBe(false);
  expect(await runs.setOwnTries(claim, 1)).toBe(true);
  expect(await tries()).toBe(1);
  await store.write(claim, ['{"id":"a"}'], { next });
  expect(await tries()).toBe(0);
});

test('7 and "7" are in doubt each for itself, and are told as gone by the ids that the service knows', async () => {
  const { claim, compare } = await secondRun(['{"id":7}', '{"id":"7"}']);
  await inDoubt.note(claim, { comeOrGone: ['#7'], changed: [] });
  expect(await compare(['{"id":7}', '{"id":"7"}'])).toEqual({ created: [0], changed: [] });
  await inDoubt.note(claim, { comeOrGone: ['#8', '8', '##8', '#12345678901234567890'], changed: [] });
  const ids = await inDoubt.missing(claim, 10);
  expect(ids).toEqual(['##8', '#12345678901234567890', '#8', '8']);
  await deletions.takeBack(claim, ids, NOW, PARKING);
  expect((await parked.nextDue(claim, NOW + 1))?.deleted).toEqual([
    '{"id":"#8"}',
    '{"id":12345678901234567890}',
    '{"id":8}',
    '{"id":"8"}',
  ]);
  expect(await inDoubt.missing(claim, 10)).toEqual([]);
  expect(await compare(['{"id":7}', '{"id":"7"}'])).toEqual({ created: [0], changed: [] });
});

test('what is marked as deleted is in doubt no more; a record that the copy has as deleted is missing', async () => {
  const { claim } = await secondRun(['{"id":"a"}', '{"id":"b"}', '{"id":"c"}']);
  await store.remove(claim, ['c'], NOW);
  await inDoubt.note(claim, { comeOrGone: ['a', 'c'], changed: ['b'] });
  expect(await inDoubt.missing(claim, 10)).toEqual(['c']);
  await store.remove(claim, ['a', 'b'], NOW);
  expect(await inDoubt.missing(claim, 10)).toEqual(['c']);
  expect(await deletions.takeBack(claim, ['c'], NOW)).toBe(true);
  expect(await inDoubt.missing(claim, 10)).toEqual([]);
});

test('a record that the copy never had is parked as a deleted one: shown nowhere, counted nowhere, and new when it comes', async () => {
  const { claim, compare } = await secondRun(['{"id":"a"}']);
  const before = await runs.find(claim);
  await inDoubt.note(claim, { comeOrGone: ['b'], changed: [] });
  expect(await deletions.takeBack(claim, ['b'], NOW, PARKING)).toBe(true);
  expect(await runs.find(claim)).toEqual(before);
  await store.index();
  const page = { offset: 0, limit: 10 };
  const { records: shown, total } = await records.browse(claim.instanceId, 'contacts', page);
  expect([shown.map(({ id }) => id), total]).toEqual([['a'], 1]);
  const found = await records.browse(claim.instanceId, 'contacts', { ...page, search: 'b' });
  expect(found.total).toBe(0);
  const texts: string[] = [];
  for await (const text of records.stream(claim.instanceId, 'contacts')) texts.push(text);
  expect(texts).toEqual(['{"id":"a"}']);
  expect((await deletions.unseen(claim, 0, 10)).records.map(({ id }) => id)).toEqual(['a']);
  expect(await compare(['{"id":"b"}'])).toEqual({ created: [0], changed: [] });
  expect(await store.write(claim, ['{"id":"b"}'], { next })).toMatchObject({ stored: 2 });
  expect((await parked.nextDue(claim, NOW + 1))?.deleted).toEqual([]);
});

test('who has lost the run notes nothing before, but notes again what it has told; not for a disconnected instance', async () => {
  const { claim: old, compare } = await secondRun(['{"id":"a"}']);
  const ids = { comeOrGone: [], changed: ['a'] };
  const isInDoubt = async () => (await compare(['{"id":"a"}'])).changed.length > 0;
  await inDoubt.noteIfLost(old, ids);
  expect(await isInDoubt()).toBe(false);
  const { claim } = await store.claimRun(old);
  expect(await inDoubt.note(old, ids)).toBe(false);
  expect(await deletions.takeBack(old, ['b'], NOW, PARKING)).toBe(false);
  expect(await isInDoubt()).toBe(false);
  await inDoubt.noteIfLost(old, ids);
  expect(await isInDoubt()).toBe(true);
  await store.write(claim, ['{"id":"a"}'], { next });
  await store.instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
  expect(await inDoubt.note(claim, ids)).toBe(false);
  await store.tokens.disconnect(claim.instanceId);
  await inDoubt.noteIfLost(old, ids);
  expect(await isInDoubt()).toBe(false);
});

/** A list of three, whose run another worker has taken over from `old`; and which of them are in doubt. */
async function takenOver() {
  const documents = ['a', 'b', 'c'].map((id) => JSON.stringify({ id }));
  const { claim: old, compare } = await secondRun(documents);
  await inDoubt.note(old, { comeOrGone: ['a'], changed: ['b', 'gone'] });
  const { claim } = await store.claimRun(old);
  const told = { comeOrGone: ['a', 'c'], changed: ['b'] };
  return { old, claim, told, documents, inDoubtNow: () => compare(documents) };
}

test('a note takes the place of those from before; what others note after it outlasts what is written', async () => {
  const { old, claim, told, documents, inDoubtNow } = await takenOver();
  await inDoubt.note(claim, told);
  await store.write(claim, documents, { next });
  expect(await inDoubtNow()).toEqual(untold);

  await inDoubt.note(claim, told);
  await inDoubt.noteIfLost(old, { comeOrGone: ['a'], changed: ['b'] });
  await store.write(claim, documents, { next });
  expect(await inDoubtNow()).toEqual({ created: [0], changed: [1] });
  await inDoubt.note(claim, { comeOrGone: [], changed: ['a', 'b'] });
  expect(await inDoubtNow()).toEqual({ created: [0], changed: [1] });
  await store.write(claim, documents, { next });
  expect(await inDoubtNow()).toEqual(untold);
});

test('so it does when records are marked as deleted, or told as such', async () => {
  const { old, claim } = await takenOver();
  const gone = { comeOrGone: ['a', 'gone'], changed: [] };
  const writeAll = async () => {
    await store.remove(claim, ['a'], NOW);
    await deletions.takeBack(claim, ['gone'], NOW);
  };
  await inDoubt.note(claim, gone);
  await inDoubt.noteIfLost(old, gone);
  await writeAll();
  expect(await inDoubt.missing(claim, 10)).toEqual(['a', 'gone']);
  await inDoubt.note(claim, gone);
  expect(await inDoubt.missing(claim, 10)).toEqual(['a', 'gone']);
  await writeAll();
  expect(await inDoubt.missing(claim, 10)).toEqual([]);
});

test('what is in doubt outlasts a disconnect that keeps the copy, and goes with the copy', async () => {
  const { claim, compare } = await secondRun(['{"id":"a"}']);
  await inDoubt.note(claim, { comeOrGone: ['a', 'told alone'], changed: [] });
  const other = await secondRun(['{"id":"a"}']);
  await inDoubt.note(other.claim, { comeOrGone: ['a'], changed: [] });
  await store.tokens.disconnect(claim.instanceId);
  expect(await compare(['{"id":"a"}'])).toEqual({ created: [0], changed: [] });
  await store.removeCopy(claim.instanceId);
  expect(await records.keepsAny(claim.instanceId)).toBe(false);
  expect(await store.db.selectFrom('in_doubt').select('id').where('id', '=', 'told alone').execute()).toEqual(
    [],
  );
  expect(await other.compare(['{"id":"a"}'])).toEqual({ created: [0], changed: [] });
});

test('who tells a parked batch whose copy is removed meanwhile notes nothing of a record that has its place by now', async () => {
  const { claim: other, compare } = await secondRun([]);
  const { claim: old, key } = await secondRun(['{"id":"a"}']);
  const seqs = await store.db.selectFrom('records').select('seq').orderBy('seq', 'desc').limit(1).execute();
  await store.removeCopy(old.instanceId);
  await store.addInstance(old.instanceId);
  await store.claimRun({ instanceId: key.instance_id, resource: key.resource });
  await store.write(other, ['{"id":"in its place"}'], { next });
  expect(
    await store.db.selectFrom('records').select('seq').where('id', '=', 'in its place').execute(),
  ).toEqual(seqs);
  await inDoubt.noteSeqsIfLost(old, { created: [], changed: seqs.map(({ seq }) => seq), deleted: [] });
  expect(await compare(['{"id":"in its place"}'])).toEqual(untold);
});

test('ids in doubt are something that is kept of an instance', async () => {
  const { claim } = await store.claimRun();
  expect(await records.keepsAny(claim.instanceId)).toBe(false);
  await inDoubt.note(claim, { comeOrGone: ['a'], changed: [] });
  expect(await records.keepsAny(claim.instanceId)).toBe(true);
});
