import { describe, expect, test } from 'vitest';
import type { FeedEntry } from '../../src/store/changes.ts';
import { lockList } from '../../src/store/lists.ts';
import { collect, DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const CONSUMER = 'handler';
const BROKEN = { kind: 'handler', detail: 'It is broken.' } as const;
const EIGHTH = 1_024 * 128;

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes } = store;

  const rowOf = async ({ list }: TestClaim) => (await changes.find(list, CONSUMER)) ?? expect.unreachable();
  const told = (entries: readonly FeedEntry[]) => entries.map(({ id, change }) => `${id} ${change}`);
  const lettersOf = async ({ list }: TestClaim) =>
    (await changes.deadLetters(list, CONSUMER, 100)).map(({ external_id }) => external_id);
  const countLetters = async ({ list }: TestClaim) =>
    (await changes.deadLetters(list, CONSUMER, 1_000)).length;
  /** What becomes of a batch at the cursor. */
  async function take(claim: TestClaim, limit?: number): Promise<FeedEntry[]> {
    const held = await store.hold(claim);
    const entries = await changes.read(held.list, held.cursor, limit);
    if (entries.length > 0) expect(await changes.deliver(held, entries, NOW)).toBeDefined();
    return entries;
  }

  test('each record comes once, in its newest form, in the order of numbers', async () => {
    const claim = await store.copy(['{"id":"a"}', '{"id":"b"}', '{"id":"c"}']);
    expect(told(await take(claim, 1))).toEqual(['a created']);
    const second = await store.claimRun(claim);
    await store.write(second, ['{"id":"a","n":1}', '{"id":"b","n":1}']);
    await store.markUnseen(second);
    const rest = await take(claim);
    expect(told(rest)).toEqual(['a changed', 'b created', 'c deleted']);
    expect(rest.map(({ document }) => document)).toEqual(['{"id":"a","n":1}', '{"id":"b","n":1}', null]);
    expect(await take(claim)).toEqual([]);
    // From the beginning, all of them are there.
    expect(told(await changes.read(claim.list, 0))).toEqual(['a created', 'b created', 'c deleted']);
  });

  test('a batch has a hundred records, or a megabyte, or one larger record', async () => {
    const sizes = [3, 3, 3, 12, 1].map((size, n) => `{"id":"${n}","x":"${'x'.repeat(size * EIGHTH)}"}`);
    const large = await store.claimRun();
    await store.write(large, sizes);
    const batches: string[][] = [];
    for (let after = 0; ; ) {
      const entries = await changes.read(large.list, after);
      if (entries.length === 0) break;
      batches.push(entries.map(({ id }) => id));
      after = entries.at(-1)?.seq ?? 0;
    }
    expect(batches).toEqual([['0', '1'], ['2'], ['3'], ['4']]);
    const many = await store.copy(documentsOf(250));
    expect(await changes.read(many.list, 0)).toHaveLength(100);
    expect(await changes.read(many.list, 0, 7)).toHaveLength(7);
  });

  test('the holder of a consumer moves its cursor, and the earlier one does not', async () => {
    const claim = await store.copy(documentsOf(3));
    const [first, second] = [await store.hold(claim), await store.hold(claim)];
    const entries = await changes.read(claim.list, 0);
    expect([await changes.holds(first), await changes.holds(second)]).toEqual([false, true]);
    expect(await changes.deliver(first, entries, NOW)).toBeUndefined();
    const entry = entries[0] ?? expect.unreachable();
    expect(await changes.fail(first, entry, BROKEN, { tries: 1, notBefore: NOW })).toBeUndefined();
    expect(await changes.bury(first, entry, BROKEN, NOW, false)).toBeUndefined();
    expect(await rowOf(claim)).toMatchObject({ cursor: 0, attempts: 0, error_kind: null });
    expect(await lettersOf(claim)).toEqual([]);
    expect(await changes.deliver(second, entries, NOW)).toMatchObject({ cursor: entries[2]?.seq });
    // The cursor has moved since.
    expect(await changes.deliver(second, entries.slice(0, 1), NOW)).toBeUndefined();
    expect((await rowOf(claim)).cursor).toBe(entries[2]?.seq);
  });

  test('a first claim waits for a pause that is under way, and is void', async () => {
    const claim = await store.copy(['{"id":"a"}']);
    let claimed: Promise<unknown> | undefined;
    await store.db.transact(async (tx) => {
      await lockList(store.db, tx, claim.list);
      claimed = changes.claim({ ...claim, consumer: CONSUMER }, { whileActive: true, now: NOW });
      await store.waitForLocks(1);
      await tx.updateTable('lists').set({ paused_at: NOW }).where('id', '=', claim.list).execute();
    });
    expect(await claimed).toBeUndefined();
  });

  test('a replayed list comes again from the beginning, to this consumer alone', async () => {
    const claim = await store.copy(documentsOf(3));
    const other = await store.hold(claim, 'other');
    await changes.deliver(other, await changes.read(claim.list, 0), NOW);
    await take(claim);
    const held = await store.hold(claim);
    await changes.replayList(claim.list, CONSUMER);
    expect(await changes.holds(held)).toBe(false);
    expect(await rowOf(claim)).toMatchObject({ cursor: 0, failed_in_row: 0 });
    expect((await changes.find(claim.list, 'other'))?.cursor).toBeGreaterThan(0);
    expect(told(await take(claim))).toEqual(['0 created', '1 created', '2 created']);
  });

  test('a replayed record comes again after the others', async () => {
    const claim = await store.copy(documentsOf(3));
    await take(claim);
    expect(await changes.replayRecord(claim.list, '1')).toBe(true);
    expect(await changes.replayRecord(claim.list, 'nobody')).toBe(false);
    const { change_seq } = await store.list(claim);
    const [entry, ...others] = await changes.read(claim.list, (await rowOf(claim)).cursor);
    expect(others).toEqual([]);
    expect(entry).toMatchObject({ id: '1', change: 'changed', seq: change_seq, document: '{"id":"1"}' });
  });

  test('ten dead letters of a list are tried at a time', async () => {
    const claim = await store.copy(documentsOf(15));
    for (let count = 0; count < 15; count++) await store.bury(claim);
    const later = NOW + 60 * 60_000;
    const isDue = async () => (await changes.dueLetters(later)).some(({ list }) => list === claim.list);
    expect(await isDue()).toBe(true);
    expect(await changes.retryDue(claim.list, CONSUMER, later)).toBe(true);
    expect(await isDue()).toBe(false);
    expect(await take(claim)).toHaveLength(10);
    expect([await isDue(), await countLetters(claim)]).toEqual([true, 5]);
  });

  test('dead letters are retried, and go when they are delivered', async () => {
    const claim = await store.copy(documentsOf(230));
    for (let count = 0; count < 120; count++) await store.bury(claim);
    await take(claim);
    await changes.retry(claim.list, CONSUMER, NOW);
    expect(await rowOf(claim)).toMatchObject({ failed_in_row: 0, not_before: null });
    expect(await countLetters(claim)).toBe(120);
    const again: FeedEntry[] = [];
    for (let batch = await take(claim); batch.length > 0; batch = await take(claim)) again.push(...batch);
    expect(new Set(again.map(({ id }) => id)).size).toBe(130);
    expect(await countLetters(claim)).toBe(0);
  });

  test('a list lags until its consumer has read it, unless the consumer waits', async () => {
    const [claim, empty] = [await store.copy(documentsOf(2)), await store.copy([])];
    const lags = async ({ instanceId }: TestClaim, now = NOW, whileActive = true) =>
      (await collect(changes.lagging(CONSUMER, { now, whileActive, portion: 2 })))
        .flat()
        .some((key) => key.instanceId === instanceId);
    const pending = async () => (await changes.progress([claim.list], CONSUMER)).get(claim.list)?.pending;
    expect([await lags(claim), await lags(empty)]).toEqual([true, false]);
    const [entry = expect.unreachable()] = await changes.read(claim.list, 0);
    await changes.fail(await store.hold(claim), entry, BROKEN, { tries: 1, notBefore: NOW + 5 });
    expect([await lags(claim, NOW + 4), await lags(claim, NOW + 5)]).toEqual([false, true]);
    expect(await pending()).toBe(2);
    await take(claim);
    expect(await lags(claim)).toBe(false);
    expect(await pending()).toBe(0);
    await changes.replayList(claim.list, CONSUMER);
    await store.instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
    expect([await lags(claim), await lags(claim, NOW, false)]).toEqual([false, true]);
    await store.tokens.disconnect(claim.instanceId, { deleteData: true });
    expect(await lags(claim, NOW, false)).toBe(false);
  });
});
