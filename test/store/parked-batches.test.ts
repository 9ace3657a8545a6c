import { expect, test } from 'vitest';
import { NOW, openTestStore, pageOf } from './test-store.ts';

const store = await openTestStore();
const { db, pages, parked, runs } = store;
const PARKING = { error: 'It failed.', tries: 5 };
const NEXT = 'https://x.example/next';

type Claim = Awaited<ReturnType<typeof store.claimRun>>['claim'];

/** Writes a page whose batch is parked. */
async function park(claim: Claim, documents: string[], now = NOW) {
  const page = pageOf(documents, NEXT);
  const key = { instance_id: claim.instanceId, resource: claim.resource };
  return pages.commit(claim, page, await pages.compare(key, page), now, PARKING);
}

/** What is due in a run that began after all that was parked. */
const due = (claim: Claim) => parked.nextDue(claim, NOW + 1_000);

test('a batch is parked with its page, or not at all', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"differs","n":1}', '{"id":"back"}', '{"id":"same"}'], { next: NEXT });
  await store.remove(claim, ['back'], NOW);
  const newer = await runs.claim(claim);
  expect(await park(claim, ['{"id":"lost"}'])).toBeUndefined();
  expect(await parked.count(claim)).toBe(0);

  const held = { ...claim, fence: newer?.fence ?? 0 };
  await park(held, ['{"id":"new"}', '{"id":"differs","n":2}', '{"id":"back"}', '{"id":"same"}']);
  expect(await due(held)).toMatchObject({
    created: ['{"id":"back"}', '{"id":"new"}'],
    changed: ['{"id":"differs","n":2}'],
    deleted: [],
  });
  expect(await parked.list(held, 5)).toEqual([
    { ...PARKING, count: 3, first_id: 'back', parked_at: NOW, tried_at: NOW },
  ]);
});

test('deletions are parked with their marks', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}', '{"id":"2"}']);
  await runs.finish(claim, NOW);
  const { claim: second } = await store.claimRun(claim);
  const unseen = (await store.deletions.unseen(second, 0, 10)).records.map(({ seq }) => seq);
  expect(await store.deletions.mark({ ...second, fence: second.fence - 1 }, unseen, NOW, PARKING)).toBe(
    false,
  );
  expect(await parked.count(claim)).toBe(0);
  expect(await store.deletions.mark(second, unseen, NOW, PARKING)).toBe(true);
  expect(await due(second)).toMatchObject({ created: [], deleted: ['{"id":"1"}', '{"id":"2"}'] });
});

test('records are told as they are by then; what another batch has told is left out', async () => {
  const { claim } = await store.claimRun();
  await park(claim, ['{"id":"changed","n":1}', '{"id":"gone"}', '{"id":"still"}']);
  await store.write(claim, ['{"id":"changed","n":2}'], { next: NEXT });
  await store.remove(claim, ['gone'], NOW);
  expect(await due(claim)).toMatchObject({
    created: ['{"id":"changed","n":2}', '{"id":"still"}'],
    deleted: [],
  });
});

test('a record that is parked as new is new for a page that changes it, too, until it is taken', async () => {
  const { claim, run } = await store.claimRun();
  await park(claim, ['{"id":"a","n":1}']);
  const compare = async (n: number) => {
    const { created, changed } = await pages.compare(run, pageOf([`{"id":"a","n":${n}}`]));
    return { created, changed };
  };
  expect(await compare(1)).toEqual({ created: [], changed: [] });
  expect(await compare(2)).toEqual({ created: [0], changed: [] });
  expect(await parked.take(claim, (await due(claim))?.place ?? 0)).toBe(true);
  expect(await compare(2)).toEqual({ created: [], changed: [0] });
});

test('what is parked as changed is told as new when it was gone since, and is parked as new or in doubt', async () => {
  const { claim } = await store.claimRun();
  const ids = ['back', 'in doubt', 'as it was'];
  const version = (n: number) => ids.map((id) => JSON.stringify({ id, n }));
  await store.write(claim, version(1), { next: NEXT });
  await park(claim, version(2), NOW);
  await store.remove(claim, ['back'], NOW);
  await park(claim, version(3).slice(0, 1), NOW + 1);
  await store.inDoubt.note(claim, { comeOrGone: ['in doubt'], changed: ['as it was'] });
  expect(await due(claim)).toMatchObject({
    created: ['{"id":"back","n":3}', '{"id":"in doubt","n":2}'],
    changed: ['{"id":"as it was","n":2}'],
  });
});

test('each run has each batch once, those first that were tried longest ago; whoever hurries has all at once', async () => {
  const { claim } = await store.claimRun();
  await park(claim, ['{"id":"a"}'], NOW);
  await park(claim, ['{"id":"b"}'], NOW + 10);
  expect(await parked.nextDue(claim, NOW)).toBeUndefined();
  const first = await parked.nextDue(claim, NOW + 20);
  expect(first?.created).toEqual(['{"id":"a"}']);
  expect(await parked.begin(claim, first?.place ?? 0, 'Again.', NOW + 30)).toBe(true);
  const second = await parked.nextDue(claim, NOW + 20);
  expect(second?.created).toEqual(['{"id":"b"}']);
  expect(await parked.take(claim, second?.place ?? 0)).toBe(true);
  expect(await parked.nextDue(claim, NOW + 20)).toBeUndefined();
  expect(await parked.list(claim, 5)).toMatchObject([{ tries: 6, error: 'Again.', tried_at: NOW + 30 }]);

  expect(await parked.makeDue(claim.instanceId)).toEqual(['contacts']);
  expect((await parked.nextDue(claim, NOW))?.created).toEqual(['{"id":"a"}']);
});

test('a run that goes on at its place after a failure has each batch once more, in their order, but for those that have to wait', async () => {
  const { claim } = await store.claimRun();
  const other = await store.claimRun();
  for (const id of ['a', 'b', 'waits']) await park(claim, [`{"id":"${id}"}`], NOW + 10);
  await park(other.claim, ['{"id":"other"}'], NOW + 10);
  const [a, , waits] = await db
    .selectFrom('parked_batches')
    .innerJoin('runs', 'runs.list', 'parked_batches.list')
    .select('place')
    .where('instance_id', '=', claim.instanceId)
    .orderBy('place')
    .execute();
  // Tried again at the end of the run: so it comes last.
  expect(await parked.keep(claim, a?.place ?? 0, 'Again.', NOW + 20)).toBe(true);
  expect(await parked.keep(claim, waits?.place ?? 0, 'Later.', NOW + 2_000)).toBe(true);
  for (const now of [NOW + 1_000, NOW + 1_100]) {
    const { fence = 0 } = (await runs.find(claim)) ?? {};
    const held = { ...claim, fence };
    await runs.fail(held, { error: 'It failed.', keepsPlace: true, now });
    expect(await parked.nextDue(held, NOW)).toBeUndefined();
    expect(await runs.start(claim, now)).toBe(true);
    const run = await runs.claim(claim);
    expect(run).toMatchObject({ cursor: NEXT, started_at: NOW });
    const order: unknown[] = [];
    for (
      let due = await parked.nextDue(claim, NOW);
      due !== undefined;
      due = await parked.nextDue(claim, NOW)
    ) {
      order.push(...due.created);
      await parked.begin({ ...claim, fence: run?.fence ?? 0 }, due.place, 'Again.', now + order.length);
    }
    expect(order).toEqual(['{"id":"b"}', '{"id":"a"}']);
  }
  expect(await parked.nextDue(other.claim, NOW)).toBeUndefined();
});

test('who has lost the run neither takes a batch out nor notes a try', async () => {
  const { claim } = await store.claimRun();
  await park(claim, ['{"id":"1"}']);
  const batch = (await due(claim)) ?? expect.unreachable();
  const { place } = batch;
  await runs.claim(claim);
  expect(await parked.take(claim, place)).toBe(false);
  expect(await parked.begin(claim, place, 'Late.', NOW)).toBe(false);
  expect(await parked.keep(claim, place, 'Late.', NOW)).toBe(false);
  expect(await parked.putBack(claim, { ...batch, error: 'Late.' })).toBe(false);
  expect(await parked.list(claim, 5)).toMatchObject([PARKING]);
});

test('a try counts from its begin, once in a run, whether anybody sees its end or not; one that is put back does not', async () => {
  const { claim } = await store.claimRun();
  await park(claim, ['{"id":"1"}'], NOW - 1);
  const batch = (await parked.nextDue(claim, NOW)) ?? expect.unreachable();
  const before = await parked.list(claim, 5);
  expect(await parked.begin(claim, batch.place, 'At work.', NOW + 10)).toBe(true);
  expect(await parked.list(claim, 5)).toMatchObject([{ tries: 6, error: 'At work.', tried_at: NOW + 10 }]);
  // Whoever takes the run over leaves it alone, and the next run has it.
  const { fence = 0 } = (await runs.claim(claim)) ?? {};
  const held = { ...claim, fence };
  expect(await parked.nextDue(held, NOW)).toBeUndefined();
  expect((await parked.nextDue(held, NOW + 20))?.tries).toBe(6);

  expect(await parked.keep(held, batch.place, 'Not these.', NOW + 30)).toBe(true);
  expect(await parked.list(claim, 5)).toMatchObject([{ tries: 6, error: 'Not these.', tried_at: NOW + 30 }]);
  expect(await parked.putBack(held, batch)).toBe(true);
  expect(await parked.list(claim, 5)).toEqual(before);
});

test('the button of one instance hurries no other, and a list of another resource is another list', async () => {
  const mine = await store.claimRun();
  const other = await store.claimRun();
  const conversations = await store.claimRun({ ...mine.claim, resource: 'conversations' });
  await park(mine.claim, ['{"id":"1"}']);
  await park(other.claim, ['{"id":"1"}']);
  expect(await parked.makeDue(mine.claim.instanceId)).toEqual(['contacts']);
  expect(await parked.nextDue(other.claim, NOW)).toBeUndefined();
  expect(await parked.count(conversations.claim)).toBe(0);
});

test('there is an end to how many can be parked', async () => {
  const { claim, run } = await store.claimRun();
  await park(claim, ['{"id":"1"}']);
  const row = await db
    .selectFrom('parked_batches')
    .selectAll()
    .where('list', '=', run.list)
    .executeTakeFirstOrThrow();
  const { place: _place, ...another } = row;
  await db
    .insertInto('parked_batches')
    .values(Array.from({ length: 998 }, () => another))
    .execute();
  expect(await parked.isFull(claim)).toBe(false);
  await db.insertInto('parked_batches').values(another).execute();
  expect(await parked.isFull(claim)).toBe(true);
});

test('what is set aside goes with the copy', async () => {
  const { claim } = await store.claimRun();
  await park(claim, ['{"id":"1"}', '{"no":"id"}']);
  const other = await store.claimRun();
  await park(other.claim, ['{"id":"1"}', '{"no":"id"}']);
  await store.removeCopy(claim.instanceId);
  expect([await parked.count(claim), await store.quarantine.count(claim)]).toEqual([0, 0]);
  expect([await parked.count(other.claim), await store.quarantine.count(other.claim)]).toEqual([1, 1]);
});

test('a batch whose records have grown large by then comes in parts, none of which keeps the others', async () => {
  const { claim } = await store.claimRun();
  const ids = Array.from({ length: 7 }, (_, n) => String(n));
  await park(
    claim,
    ids.map((id) => `{"id":"${id}"}`),
  );
  const grown = ids.map((id) => `{"id":"${id}","x":"${'x'.repeat(2_000_000)}"}`);
  await store.write(claim, grown, { next: NEXT });
  const lost = { ...claim, fence: claim.fence - 1 };
  expect(await parked.nextDue(lost, NOW + 1_000)).toBeUndefined();
  expect(await parked.count(claim)).toBe(1);

  const first = await due(claim);
  expect(first?.created).toEqual(grown.slice(0, 3));
  expect(await parked.begin(claim, first?.place ?? 0, 'Again.', NOW + 2_000)).toBe(true);
  const second = await due(claim);
  expect(second?.created).toEqual(grown.slice(3, 6));
  expect(await parked.take(claim, second?.place ?? 0)).toBe(true);
  const third = await due(claim);
  expect(third?.created).toEqual(grown.slice(6));
  expect(await parked.take(claim, third?.place ?? 0)).toBe(true);
  expect(await due(claim)).toBeUndefined();
  expect(await parked.list(claim, 5)).toMatchObject([{ count: 3, tries: 6, first_id: '0', error: 'Again.' }]);
});
