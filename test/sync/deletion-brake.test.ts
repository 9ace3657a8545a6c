import { describe, expect, test } from 'vitest';
import { markDeletions } from '../../src/sync/deletion-brake.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/parts.ts';
import { DATABASES, documentsOf, NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const context: SliceContext = {
    logger: testLogger().logger,
    signal: new AbortController().signal,
    othersWait: () => false,
  };

  /** A copy of so many records. */
  async function open(count: number) {
    const first = await store.copy(documentsOf(count));
    const parts = { ...store, now: () => NOW } as unknown as SyncParts;
    async function begin(documents: readonly string[]) {
      const claim = await store.claimRun(first);
      const run = (await store.write(claim, documents)) ?? expect.unreachable();
      const instance = (await store.instances.find(first.instanceId)) ?? expect.unreachable();
      const resource = { name: 'contacts', title: 'Contacts', route: '/contacts' };
      return { claim, run, work: { claim, instance, resource } satisfies SliceWork };
    }
    return {
      list: first.list,
      parts,
      begin,
      live: async () => (await store.list(first)).stored,
      /** A whole run over these documents. @returns its held deletions */
      async runOver(documents: readonly string[]) {
        const { claim, run, work } = await begin(documents);
        const held = await markDeletions(parts, work, run, () => false, context);
        if (typeof held !== 'number') expect.unreachable();
        await store.runs.finish(claim, held, NOW);
        return held;
      },
    };
  }
  const some = (from: number, to: number) => documentsOf(to).slice(from);

  test.each([
    ['half of a list goes', 60, 30, 0, 30],
    ['more than half of it is held', 60, 29, 31, 60],
    ['all of a large list is held', 50, 0, 50, 50],
    ['of a list of fewer than 50, all goes', 49, 0, 0, 0],
  ])('%s', async (_what, count, seen, held, left) => {
    const { runOver, live } = await open(count);
    expect(await runOver(documentsOf(seen))).toBe(held);
    expect(await live()).toBe(left);
  });

  test('when the next run agrees, the records that neither saw go', async () => {
    const { runOver, live, list } = await open(100);
    expect(await runOver(some(0, 20))).toBe(80);
    // This run alone missed ten records: it holds them.
    expect(await runOver(some(10, 30))).toBe(10);
    expect(await live()).toBe(30);
    const deleted = (await store.feed(list)).filter(({ change }) => change === 'deleted');
    expect(deleted.map(({ id }) => Number(id))).toEqual(Array.from({ length: 70 }, (_, n) => n + 30));
    expect(await runOver(some(0, 30))).toBe(0);
    expect(await live()).toBe(30);
  });

  test('a run that sees most records again deletes none of the held ones', async () => {
    const { runOver, live } = await open(100);
    expect(await runOver([])).toBe(100);
    expect(await runOver(some(0, 90))).toBe(0);
    expect(await live()).toBe(90);
    expect(await runOver([])).toBe(90);
    expect(await live()).toBe(90);
  });

  test('a run with an unreadable id holds even a few deletions', async () => {
    const { runOver, live } = await open(10);
    expect(await runOver([...some(0, 9), '{"no":"id"}'])).toBe(1);
    expect(await live()).toBe(10);
    expect(await runOver([...some(0, 9), '{"no":"id"}'])).toBe(0);
    expect(await live()).toBe(9);
    // A rejected record with a readable id holds nothing.
    expect(await runOver([...some(0, 8), '{"id":"a\\u0000"}'])).toBe(0);
    expect(await live()).toBe(8);
  });

  test('a run that agrees with the one before marks no more over several slices', async () => {
    const { begin, runOver, parts, list } = await open(1_200);
    expect(await runOver(some(0, 100))).toBe(1_100);
    const { work } = await begin(some(100, 200));
    for (let slice = 0; ; slice++) {
      const run = (await store.runs.history(list, 1))[0] ?? expect.unreachable();
      const held = await markDeletions(parts, work, run, () => true, context);
      if (held === 'over') continue;
      expect([held, slice]).toEqual([100, 2]);
      break;
    }
    expect((await store.list({ instanceId: work.instance.id, resource: 'contacts' })).stored).toBe(200);
  });
});
