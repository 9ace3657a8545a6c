import { describe, expect, test } from 'vitest';
import { DATABASES, documentsOf, NOW, openTestStore } from './test-store.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, db, instances, removals, records, tokens, whoSees } = store;
  const COPY_TABLES = ['records', 'seen', 'rejected_records', 'consumers', 'dead_letters', 'runs'] as const;

  const left = async (list: number) => {
    const counts = COPY_TABLES.map(async (table) => {
      const rows = await db.selectFrom(table).selectAll().where('list', '=', list).execute();
      return rows.length;
    });
    return Promise.all(counts);
  };
  const isGoing = (instanceId: string) => records.isGoing(instanceId);

  const HANDLER = { whileActive: true, now: NOW };

  test('a disconnect ends tokens, runs, deliveries and access, and keeps the copy', async () => {
    const claim = await store.copy(documentsOf(3));
    const key = { ...claim, consumer: 'handler' };
    const held = await store.hold(claim);
    const entries = await store.feed(claim.list);
    expect((await whoSees(claim.instanceId)).size).toBe(1);

    expect(await tokens.disconnect(claim.instanceId)).toBe(0);
    expect(await instances.find(claim.instanceId)).toMatchObject({
      status: 'disconnected',
      error_kind: null,
    });
    expect(await tokens.find(claim.instanceId)).toBeUndefined();
    expect(await changes.holds(held)).toBe(false);
    expect(await changes.deliver(held, entries, NOW)).toBeUndefined();
    expect(await changes.claim(key, HANDLER)).toBeUndefined();
    expect(await whoSees(claim.instanceId)).toEqual(new Set());
    expect(await store.list(claim)).toMatchObject({ stored: 3 });
  });

  test('the browser that disconnects still sees the copy', async () => {
    const id = await store.addInstance();
    const [first = ''] = await whoSees(id);
    await store.addInstance(id);
    expect((await whoSees(id)).size).toBe(2);
    await tokens.disconnect(id, { browserId: first });
    expect(await whoSees(id)).toEqual(new Set([first]));
  });

  test('a removal deletes a copy of many portions with its other rows', async () => {
    const gone = await store.copy([...documentsOf(1_200), '{"no":"id"}']);
    const kept = await store.copy(documentsOf(3));
    for (const copy of [gone, kept]) await store.index(copy);
    expect((await left(gone.list)).slice(0, 4)).toEqual([1_200, 1_200, 1, 1]);
    await tokens.disconnect(gone.instanceId, { deleteData: true });
    expect([await isGoing(gone.instanceId), await records.keepsAny(gone.instanceId)]).toEqual([true, false]);
    await removals.finish();
    expect(await left(gone.list)).toEqual([0, 0, 0, 0, 0, 0]);
    expect((await left(kept.list)).slice(0, 4)).toEqual([3, 3, 0, 1]);
    expect([await isGoing(gone.instanceId), await records.keepsAny(kept.instanceId)]).toEqual([false, true]);
    const found = await records.browse(kept.instanceId, 'contacts', { search: '1', offset: 0, limit: 9 });
    expect(found.records.map(({ id }) => id)).toEqual(['1']);
  });

  test('a removal that was interrupted is finished later', async () => {
    const [one, two] = [await store.copy(documentsOf(600)), await store.copy(documentsOf(2))];
    for (const { instanceId } of [one, two]) await tokens.disconnect(instanceId, { deleteData: true });
    await removals.finish(one.instanceId, AbortSignal.abort());
    expect([await isGoing(one.instanceId), await isGoing(two.instanceId)]).toEqual([true, true]);
    await removals.finish(one.instanceId);
    expect([await isGoing(one.instanceId), await isGoing(two.instanceId)]).toEqual([false, true]);
    await Promise.all([removals.finish(), removals.finish()]);
    expect(await left(two.list)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('an install during the removal gets a new list, which stays', async () => {
    const old = await store.copy(documentsOf(600, 'old-'));
    await tokens.disconnect(old.instanceId, { deleteData: true });
    await store.addInstance(old.instanceId);
    const fresh = await store.copy(documentsOf(2, 'new-'), old);
    expect(fresh.list).not.toBe(old.list);
    await removals.finish();
    expect((await left(fresh.list))[0]).toBe(2);
    const { total } = await records.browse(old.instanceId, 'contacts', { offset: 0, limit: 9 });
    expect(total).toBe(2);
  });
});
