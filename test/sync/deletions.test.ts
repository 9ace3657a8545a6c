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
  expect(await markDeletions(parts, work, run, context)).toBe(true);
  clearImmediate(next);
  expect(told.flatMap(({ ids }) => ids)).toEqual(Array.from({ length: 12 }, (_, n) => String(n)));
  expect(Math.max(...told.map(({ ids }) => ids.length))).toBeLessThan(4);
  expect(new Set(told.map((batch) => batch.turns)).size).toBe(told.length);
  expect(await store.count(work.claim.instanceId, 'contacts')).toBe(0);
});
