import { describe, expect, test } from 'vitest';
import { collectWrites, hashKey } from '../../src/changes/collect-writes.ts';
import { addWrites, type Write } from '../../src/store/outbox.ts';
import { DATABASES, openTestStore } from './test-store.ts';

const LEASE_MS = 60_000;
const LIMITS = { limit: 10, againMs: LEASE_MS };
const AGAIN = { state: 'pending', afterMs: 0, wasSent: true, error: 'It failed.' } as const;

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { db, outbox, tokens, instances } = store;

  /** An instance with tags for these conversations; and their keys. */
  async function open(...conversations: string[]) {
    const instanceId = await store.addInstance();
    if (conversations.length > 0) await tag(instanceId, ...conversations);
    return instanceId;
  }

  /** Tags conversations in one transaction. `reply:…` replies instead, which must not come twice. */
  async function tag(instanceId: string, ...conversations: string[]): Promise<void> {
    const collected = collectWrites(instanceId);
    for (const key of conversations) {
      const [object = '', what = ''] = key.split(' ');
      const values = { conversation_id: object };
      if (what.startsWith('reply'))
        await collected.outbox.replyToConversation(values, { body: what }, { key });
      else await collected.outbox.addConversationTags(values, { tag_ids: [what || 't'] }, { key });
    }
    await db.transact((tx) => addWrites(db, tx, instanceId, collected.close()));
  }

  const next = async (instanceId: string) => (await outbox.next(instanceId, LIMITS)).writes;
  const keysOf = (writes: readonly Write[]) => writes.map(({ key }) => key);
  const all = (instanceId: string) =>
    db.selectFrom('outbox').selectAll().where('instance_id', '=', instanceId).orderBy('id').execute();
  async function begin(instanceId: string): Promise<Write> {
    const [first] = await next(instanceId);
    return (first && (await outbox.begin(first, LEASE_MS))) ?? expect.unreachable('nothing to send');
  }
  /** As if the lease of everything that is being sent had run out. */
  const endLeases = () =>
    db.transact((tx) =>
      tx.updateTable('outbox').set({ not_before: 0 }).where('state', '=', 'sending').execute(),
    );
  const schedule = async (instanceId: string, waitMs?: number) => {
    return outbox.schedule(instanceId, (await outbox.next(instanceId, LIMITS)).seen, waitMs);
  };
  const isDue = async (instanceId: string) => (await outbox.due(100)).includes(instanceId);

  test('a key adds a write once, and stands for one request', async () => {
    const id = await open('a', 'b');
    await tag(id, 'b', 'c');
    expect(keysOf(await next(id))).toEqual(['a', 'b', 'c']);
    const other = collectWrites(id);
    await other.outbox.addConversationTags({ conversation_id: 'a' }, { tag_ids: ['other'] }, { key: 'a' });
    const adding = db.transact((tx) => addWrites(db, tx, id, other.close()));
    await expect(adding).rejects.toThrow('The key "a" stands for another request');
    const later = collectWrites(id);
    const values = { conversation_id: 'a' };
    await later.outbox.addConversationTags(values, { tag_ids: ['other'] }, { key: 'a', keepFirst: true });
    await db.transact((tx) => addWrites(db, tx, id, later.close()));
    expect((await all(id)).length).toBe(3);
    const elsewhere = await open('a');
    expect(keysOf(await next(elsewhere))).toEqual(['a']);
  });

  test('of each object the oldest open write goes first; an unknown one holds up the others', async () => {
    const id = await open('a reply1', 'b 1', 'a 2', 'b 2');
    expect(keysOf(await next(id))).toEqual(['a reply1', 'b 1']);
    const [reply, first] = [await begin(id), await begin(id)];
    expect(await next(id)).toEqual([]);
    expect(await outbox.finish(first, { state: 'refused', error: 'No.' })).toBe(true);
    expect(keysOf(await next(id))).toEqual(['b 2']);
    expect(await outbox.finish(reply, { state: 'unknown', error: 'Lost.' })).toBe(true);
    expect(keysOf(await next(id))).toEqual(['b 2']);
    expect(await outbox.counts(id)).toEqual({ pending: 2, sending: 0, refused: 1, unknown: 1, discarded: 0 });
    expect(await outbox.resolve(id, hashKey(id, 'a reply1'), 'discard')).toEqual({
      from: 'unknown',
      to: 'done',
    });
    expect(keysOf(await next(id))).toEqual(['a 2', 'b 2']);
  });

  test('one sender takes a write, and only its try has a result', async () => {
    const id = await open('a');
    const [write] = await next(id);
    if (write === undefined) return expect.unreachable();
    const taken = await Promise.all([outbox.begin(write, LEASE_MS), outbox.begin(write, LEASE_MS)]);
    const [begun] = taken.filter((one) => one !== undefined);
    if (begun === undefined) return expect.unreachable();
    expect(taken.filter((one) => one === undefined).length).toBe(1);
    await outbox.finish(begun, AGAIN);
    const again = await begin(id);
    expect(again).toMatchObject({ attempts: 2, was_sent: 1 });
    expect(await outbox.finish(begun, { state: 'done', status: 200, answerId: 'late' })).toBe(false);
    expect(await outbox.finish(again, { state: 'done', status: 200, answerId: 'x' })).toBe(true);
    expect(await all(id)).toMatchObject([{ state: 'done', answer_id: 'x', error: null, status: 200 }]);
  });

  test('a write whose sender ended comes again after a pause, or is unknown', async () => {
    const id = await open('a 1', 'b reply');
    await begin(id);
    await begin(id);
    expect(await outbox.next(id, LIMITS)).toMatchObject({ writes: [], lost: [] });
    await endLeases();
    const { writes, lost } = await outbox.next(id, LIMITS);
    expect([keysOf(writes), keysOf(lost)]).toEqual([[], ['b reply']]);
    expect(await all(id)).toMatchObject([{ state: 'pending', was_sent: 1 }, { state: 'unknown' }]);
    const leftMs = (await schedule(id)) ?? 0;
    expect(Math.round(leftMs / 10_000) * 10_000).toBe(LEASE_MS);
  });

  test('an instance is due when it has something to send, and only while it is active', async () => {
    const id = await open();
    expect(await isDue(id)).toBe(false);
    await tag(id, 'a');
    expect(await isDue(id)).toBe(true);
    expect(await schedule(id, LEASE_MS)).toBe(LEASE_MS);
    expect(await isDue(id)).toBe(false);
    await tag(id, 'b');
    expect(await isDue(id)).toBe(true);
    await instances.setStatus(id, 'paused', { from: ['active'] });
    expect(await isDue(id)).toBe(false);
    const [write] = await next(id);
    expect(write && (await outbox.begin(write, LEASE_MS))).toBeUndefined();
    await instances.setStatus(id, 'active', { from: ['paused'] });
    for (const _ of 'ab')
      await outbox.finish(await begin(id), { state: 'done', status: 200, answerId: null });
    expect(await schedule(id)).toBeUndefined();
    expect(await isDue(id)).toBe(false);
  });

  test('a write added while the sender looks for the next one wakes the sender again', async () => {
    const id = await open('a');
    await outbox.finish(await begin(id), { state: 'done', status: 200, answerId: null });
    const { seen } = await outbox.next(id, LIMITS);
    await tag(id, 'b');
    expect(await outbox.schedule(id, seen)).toBe(0);
    expect(await isDue(id)).toBe(true);
  });

  test.each([false, true])('a disconnect discards what waits (data deleted: %s)', async (deleteData) => {
    const id = await open('a reply', 'b 1', 'c reply', 'd 1');
    const [sending, done] = [await begin(id), await begin(id)];
    await outbox.finish(done, { state: 'done', status: 200, answerId: 'x' });
    expect(await tokens.disconnect(id, { deleteData })).toBe(2);
    const gone = { path_values: null, body: null };
    const discarded = { state: 'discarded', ...gone };
    expect(await all(id)).toMatchObject([
      { state: deleteData ? 'discarded' : 'unknown', ...gone, key: deleteData ? null : 'a reply' },
      { state: 'done', key: deleteData ? null : 'b 1', ...gone },
      discarded,
      discarded,
    ]);
    expect(await outbox.counts(id)).toMatchObject({ pending: 0, discarded: 2, unknown: deleteData ? 0 : 1 });
    expect(await outbox.finish(sending, { state: 'done', status: 201, answerId: null })).toBe(false);
    if (!deleteData) {
      const hash = hashKey(id, 'a reply');
      expect(await outbox.resolve(id, hash, 'retry')).toEqual({ from: 'unknown', to: 'unknown' });
      expect(await outbox.resolve(id, hash, 'discard')).toEqual({ from: 'unknown', to: 'done' });
    }
    await store.addInstance(id);
    await tag(id, 'a reply', 'b 1', 'd 1');
    expect(await next(id)).toEqual([]);
  });

  test('an erasure discards the writes to its record alone', async () => {
    const claim = await store.copy(['{"id":"a/1"}', '{"id":7}']);
    await tag(claim.instanceId, 'a/1', 'a/1 2', '7', '71');
    const erase = (id: string) => store.erasure.erase(claim.list, id, Date.now(), '/conversations');
    expect([await erase('a/1'), await erase('#7'), await erase('a/1')]).toEqual([2, 1, undefined]);
    expect(keysOf(await next(claim.instanceId))).toEqual(['71']);
  });

  test('a person sends a refused write again, or ends one that waits', async () => {
    const id = await open('a', 'b');
    await outbox.finish(await begin(id), { state: 'refused', status: 422, error: 'No.' });
    const resolve = (key: string, decision: 'retry' | 'discard') =>
      outbox.resolve(id, hashKey(id, key), decision);
    expect(await resolve('a', 'retry')).toEqual({ from: 'refused', to: 'pending' });
    expect(await resolve('b', 'discard')).toEqual({ from: 'pending', to: 'discarded' });
    expect(await resolve('b', 'retry')).toEqual({ from: 'discarded', to: 'discarded' });
    expect(await resolve('x', 'retry')).toBeUndefined();
    await begin(id);
    expect(await resolve('a', 'discard')).toEqual({ from: 'sending', to: 'sending' });
  });

  test('a finished write is forgotten after its time, but for its key', async () => {
    const id = await open('a', 'b');
    await outbox.finish(await begin(id), { state: 'done', status: 200, answerId: 'x' });
    await outbox.forget(Date.now() - LEASE_MS);
    expect(keysOf(await outbox.finished(id, 9))).toEqual(['a']);
    await outbox.forget(Date.now() + LEASE_MS);
    expect(await outbox.finished(id, 9)).toEqual([]);
    const nothing = { key: null, object: null, path_values: null, body: null, answer_id: null };
    expect(await all(id)).toMatchObject([
      { state: 'done', ...nothing },
      { key: 'b', body: '{"tag_ids":["t"]}' },
    ]);
    await tag(id, 'a');
    expect((await all(id)).length).toBe(2);
  });
});
