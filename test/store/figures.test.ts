import { describe, expect, test } from 'vitest';
import { readFigures } from '../../src/store/figures.ts';
import { installInstance } from '../support/install-instance.ts';
import { DATABASES, documentsOf, NOW, openTestStore } from './test-store.ts';

const HOUR_MS = 3_600_000;
const RESOURCES = ['contacts', 'conversations'];

describe.each(DATABASES)('on %s', (kind) => {
  async function open() {
    const store = await openTestStore(kind);
    return { ...store, read: () => readFigures(store.db, NOW, HOUR_MS, RESOURCES, ['handler', 'search']) };
  }

  test('instances and lists are counted by state, with the oldest check', async () => {
    const store = await open();
    const [paused, active, other] = [
      await store.addInstance(),
      await store.addInstance(),
      await store.addInstance(),
    ];
    await store.runs.start(paused, ['contacts'], NOW - 9_000);
    await store.instances.setStatus(paused, 'paused', { from: ['active'] });
    await store.runs.start(active, ['contacts'], NOW - 8_000);
    const claim = await store.claimRun({ instanceId: active, resource: 'contacts' });
    await store.runs.start(other, ['contacts', 'conversations'], NOW - 5_000);
    await store.runs.start(other, ['of another version'], NOW - 99_000);
    expect(await store.read()).toMatchObject({
      instances: { active: 2, paused: 1 },
      lists: { running: 1, waiting: 3 },
      // A list that was never read counts from the start of its first run.
      checkedAt: NOW - 8_000,
    });
    await store.finish(claim, { now: NOW - 6_000 });
    expect(await store.read()).toMatchObject({ lists: { idle: 1, waiting: 3 }, checkedAt: NOW - 6_000 });
    await store.runs.pause(claim, NOW);
    expect(await store.read()).toMatchObject({ lists: { waiting: 3 }, checkedAt: NOW - 5_000 });
  });

  test('the last full run of a list holds deletions, and dead letters count', async () => {
    const store = await open();
    for (const held of [30, 20]) {
      const claim = await store.claimRun();
      await store.finish(claim, { held: 99 });
      await store.finish(await store.claimRun(claim), { held });
      await store.runs.fail(await store.claimRun(claim), { kind: 'refused', detail: 'x' }, NOW, NOW);
    }
    const copy = await store.copy(documentsOf(2));
    await store.bury(copy);
    expect(await store.read()).toMatchObject({
      heldDeletions: 50,
      deadLetters: 1,
      lists: { failed: 2, idle: 1 },
    });
  });

  test('a consumer lags since its oldest pending change', async () => {
    const store = await open();
    const { list, ...copy } = await store.copy(documentsOf(2));
    const [first, second] = await store.feed(list);
    if (first === undefined || second === undefined) return expect.unreachable();
    const pending = async () => (await store.read()).pendingSince;
    expect(await pending()).toEqual({ handler: null, search: null });
    await store.hold(copy);
    expect(await pending()).toEqual({ handler: Math.floor(first.seq / 1_000), search: null });
    await store.bury({ ...copy, list });
    expect(await pending()).toEqual({ handler: Math.floor(second.seq / 1_000), search: null });
  });

  test('a due rotation is overdue if no refresh has succeeded for long', async () => {
    const store = await open();
    const add = async (name: string, dueAt: number, refreshedAt: number) => {
      const moments = {
        refresh_issued_at: dueAt - HOUR_MS,
        refresh_due_at: dueAt,
        refreshed_at: refreshedAt,
      };
      await installInstance(store.db, { id: name }, NOW, moments);
    };
    await add('later', NOW + 1, NOW - 9 * HOUR_MS);
    await add('due', NOW - HOUR_MS / 2, NOW - 9 * HOUR_MS);
    await add('tried', NOW - 5 * HOUR_MS, NOW - HOUR_MS / 2);
    await add('overdue', NOW - 4 * HOUR_MS, NOW - 3 * HOUR_MS);
    await add('gone', NOW - 99 * HOUR_MS, NOW - 99 * HOUR_MS);
    // Its token ends all the same.
    await store.instances.setStatus('overdue', 'paused', { from: ['active'] });
    await store.instances.setStatus('gone', 'needs_reauthorization', { from: ['active'] });
    expect(await store.read()).toMatchObject({ overdue: 1, oldestRefreshToken: NOW - 6 * HOUR_MS });
  });
});
