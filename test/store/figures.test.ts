import { describe, expect, test } from 'vitest';
import { readFigures } from '../../src/store/figures.ts';
import { installInstance } from '../support/install-instance.ts';
import { DATABASES, documentsOf, NOW, openTestStore } from './test-store.ts';

const HOUR_MS = 3_600_000;
const WORK = {
  resources: [{ name: 'contacts' }, { name: 'conversations' }],
  consumers: [{ name: 'handler' }, { name: 'search' }],
};

describe.each(DATABASES)('on %s', (kind) => {
  async function open(now = NOW) {
    const store = await openTestStore(kind);
    return { ...store, read: () => readFigures(store.db, WORK, NOW, now) };
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
      list_age_seconds: 8,
    });
    await store.finish(claim, { now: NOW - 6_000 });
    expect(await store.read()).toMatchObject({ lists: { idle: 1, waiting: 3 }, list_age_seconds: 6 });
    await store.dueLists.pause(claim, NOW);
    expect(await store.read()).toMatchObject({ lists: { waiting: 3 }, list_age_seconds: 5 });
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
      sync_held_deletions: 50,
      handler_dead_letters: 1,
      lists: { failed: 2, idle: 1 },
    });
  });

  test('a consumer lags since its oldest pending change', async () => {
    const later = Date.now() + HOUR_MS;
    const store = await open(later);
    const { list, ...copy } = await store.copy(documentsOf(2));
    const [first, second] = await store.feed(list);
    if (first === undefined || second === undefined) return expect.unreachable();
    const lag = async () => (await store.read()).consumer_lag_seconds;
    const since = (seq: number) => (later - Math.floor(seq / 1_000)) / 1_000;
    expect(await lag()).toEqual({ handler: 0, search: 0 });
    await store.hold(copy);
    expect(await lag()).toEqual({ handler: since(first.seq), search: 0 });
    await store.bury({ ...copy, list });
    expect(await lag()).toEqual({ handler: since(second.seq), search: 0 });
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
    const sixMonths = (Date.UTC(2026, 8, 1, 12) - NOW) / 1_000;
    const first = { refresh_tokens_overdue: 1, refresh_token_first_end_seconds: sixMonths - 6 * 3_600 };
    expect(await store.read()).toMatchObject(first);
  });
});
