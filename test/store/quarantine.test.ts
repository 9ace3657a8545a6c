import { expect, test } from 'vitest';
import { QuarantineStore } from '../../src/store/quarantine.ts';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { quarantine } = store;
const NEXT = 'https://x.example/next';

test('what cannot be kept is kept for a look: its beginning, its length, the reason, and since when', async () => {
  const { claim } = await store.claimRun();
  const long = `{"text":"${'\u{1f511}'.repeat(1_000)}"}`;
  await store.write(claim, [long, '{"id":"fine"}'], { next: NEXT });
  const [item] = await quarantine.list(claim, 5);
  expect(item).toMatchObject({ reason: 'It has no id.', length: long.length, first_seen_at: NOW });
  // Not cut in the middle of a character.
  expect(item?.excerpt.length).toBe(500);
  expect(item?.excerpt.isWellFormed()).toBe(true);
  expect(item?.excerpt.slice(0, -1)).toBe(long.slice(0, 499));

  await store.write(claim, [long], { next: NEXT, now: NOW + 5 });
  expect(await quarantine.list(claim, 5)).toMatchObject([{ first_seen_at: NOW, seen_at: NOW + 5 }]);
});

test('a secret that begins in what is kept and ends behind it leaves no beginning there', async () => {
  const token = 'at_0123456789abcdefghijklmnopqrstuv';
  const hiding = new QuarantineStore(store.db, (text) => text.replaceAll(token, '[redacted]'));
  const { claim } = await store.claimRun();
  const { list } = await store.db
    .selectFrom('runs')
    .select('list')
    .where('instance_id', '=', claim.instanceId)
    .where('resource', '=', claim.resource)
    .executeTakeFirstOrThrow();
  const items = [470, 490, 499].map((at) => ({
    text: `${'x'.repeat(at)}${token}${'y'.repeat(at)}`,
    reason: 'It has no id.',
  }));
  await store.db.writeAtOnce(() => hiding.keepNow(list, items, NOW));
  const kept = await hiding.list(claim, 5);
  expect(kept).toHaveLength(3);
  for (const { excerpt } of kept) expect(excerpt).not.toContain('at_');
});

test('a hundred different ones of a list, whatever comes; those are noted again also when it is full', async () => {
  const { claim } = await store.claimRun();
  const items = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `{"no":${from + n}}`);
  await store.write(claim, [...items(0, 60), ...items(0, 10)], { next: NEXT });
  await store.write(claim, items(60, 60), { next: NEXT });
  expect(await quarantine.count(claim)).toBe(100);
  await store.write(claim, [...items(200, 5), ...items(0, 1)], { next: NEXT, now: NOW + 5 });
  expect(await quarantine.count(claim)).toBe(100);
  const seen = (await quarantine.list(claim, 200)).filter(({ seen_at }) => seen_at === NOW + 5);
  expect(seen.map(({ excerpt }) => excerpt)).toEqual(['{"no":0}']);
});

test('what a whole run has not met is forgotten, of its list alone', async () => {
  const { claim } = await store.claimRun();
  const other = await store.claimRun({ ...claim, resource: 'conversations' });
  await store.write(other.claim, ['{"old":1}'], { now: NOW });
  await store.write(claim, ['{"old":1}', '{"still":1}'], { next: NEXT, now: NOW });
  await store.write(claim, ['{"still":1}'], { next: NEXT, now: NOW + 10 });
  await quarantine.forgetUnseen(claim, NOW + 10);
  expect((await quarantine.list(claim, 5)).map(({ excerpt }) => excerpt)).toEqual(['{"still":1}']);
  expect(await quarantine.count(other.claim)).toBe(1);
});

test('a worker that has lost its run sets nothing aside', async () => {
  const { claim } = await store.claimRun();
  await store.runs.claim(claim);
  expect(await store.write(claim, ['{}'])).toBeUndefined();
  expect(await quarantine.count(claim)).toBe(0);
});
