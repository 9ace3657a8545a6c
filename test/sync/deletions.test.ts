import { expect, test } from 'vitest';
import { markDeletions } from '../../src/sync/deletions.ts';
import type { RecordBatch } from '../../src/sync/own-logic.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const store = await openTestStore();
const context = { logger: testLogger().logger, signal: new AbortController().signal } as SliceContext;

/** A copy of these documents, and a run that has seen none of them any more. */
async function allGone(documents: string[], ownLogic: (batch: RecordBatch) => Promise<void>) {
  const { claim: first } = await store.claimRun();
  await store.write(first, documents);
  await store.runs.finish(first, NOW);
  const { claim, run } = await store.claimRun(first);
  const instance = await store.instances.find(claim.instanceId);
  const parts = { ...store, ownLogic, ownLogicTimeoutMs: 60_000, now: () => NOW } as unknown as SyncParts;
  return { parts, work: { claim, instance, resource: { name: 'contacts' } } as SliceWork, run };
}

test('large records that are gone are told a few at a time, and others have their turn in between', async () => {
  const documents = Array.from({ length: 12 }, (_, n) => `{"id":"${n}","x":"${'x'.repeat(2_000_000)}"}`);
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  const told: { ids: unknown[]; turns: number }[] = [];
  const { parts, work, run } = await allGone(documents, async ({ deleted }) => {
    told.push({ ids: deleted.map(({ id }) => id), turns });
  });
  expect(await markDeletions(parts, work, run, () => false, context)).toBe('done');
  clearImmediate(next);
  expect(told.flatMap(({ ids }) => ids)).toEqual(Array.from({ length: 12 }, (_, n) => String(n)));
  expect(Math.max(...told.map(({ ids }) => ids.length))).toBeLessThan(4);
  expect(new Set(told.map((batch) => batch.turns)).size).toBe(told.length);
  expect(await store.count(work.claim.instanceId, 'contacts')).toBe(0);
});

/** A copy of 450 records that are gone, told in batches of a hundred; `afterBatch` runs when the first is marked. */
async function manyGone(afterBatch: () => void) {
  const told: unknown[] = [];
  const documents = Array.from({ length: 450 }, (_, n) => `{"id":"${n}"}`);
  const gone = await allGone(documents, async ({ deleted }) => {
    // At the next turn of the event loop: by then this batch is marked.
    if (told.length === 0) setImmediate(afterBatch);
    told.push(...deleted.map(({ id }) => id));
  });
  const left = () => store.count(gone.work.claim.instanceId, 'contacts');
  return { ...gone, told, left, ids: documents.map((text) => JSON.parse(text).id) };
}

test('a shutdown ends the marking between two batches, and the next slice goes on where it stopped', async () => {
  const stopping = new AbortController();
  const { parts, work, run, told, left, ids } = await manyGone(() => stopping.abort());
  const stopped = { ...context, signal: stopping.signal };
  expect(await markDeletions(parts, work, run, () => false, stopped)).toBe('over');
  expect([told.length, await left()]).toEqual([100, 350]);
  expect(await markDeletions(parts, work, run, () => false, stopped)).toBe('over');
  expect(told.length).toBe(100);
  expect(await markDeletions(parts, work, run, () => false, context)).toBe('done');
  expect([told, await left()]).toEqual([ids, 0]);
});

test('the marking gives way when its turn is over, but not before a batch is marked', async () => {
  const { parts, work, run, told, left, ids } = await manyGone(() => undefined);
  for (const count of [100, 200, 300, 400]) {
    expect(await markDeletions(parts, work, run, () => true, context)).toBe('over');
    expect([told.length, await left()]).toEqual([count, 450 - count]);
  }
  expect(await markDeletions(parts, work, run, () => true, context)).toBe('done');
  expect([told, await left()]).toEqual([ids, 0]);
});
