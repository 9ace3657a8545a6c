import { describe, expect, test } from 'vitest';
import type { RunClaim } from '../../src/store/runs.ts';
import { DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';
const REFUSED = { kind: 'refused', detail: 'The service refused the request (404).' } as const;
const NO_REQUESTS = { requests: 0, refused: 0 };

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, runs, instances } = store;
  const both = ['contacts', 'conversations'];
  const runOf = async (claim: TestClaim) => (await store.list(claim)).run ?? expect.unreachable();

  const hold = ({ instanceId, resource }: TestClaim, whileActive = true) =>
    changes.claim({ instanceId, resource, consumer: 'handler' }, { whileActive });
  const lags = async ({ instanceId, resource }: TestClaim, whileActive = true) => {
    const all = await changes.lagging('handler', { now: NOW, whileActive });
    return all.some((key) => key.instanceId === instanceId && key.resource === resource);
  };
  const isOpen = async ({ run }: TestClaim) => (await runs.open(NOW)).some((open) => open.run === run);

  test('eight starts at once open one run for each list', async () => {
    const id = await store.addInstance();
    const starts = await Promise.all(Array.from({ length: 8 }, () => runs.start(id, both, NOW)));
    const opened = starts.map((open) => open?.map(({ run }) => run));
    expect(new Set(opened.flat()).size).toBe(2);
    expect(opened).toEqual(Array(8).fill(opened[0]));
    expect(await runs.lists(id)).toMatchObject([
      {
        resource: 'contacts',
        behind_since: NOW,
        run: { state: 'waiting', waiting_for: 'turn', started_at: NOW },
      },
      { resource: 'conversations' },
    ]);
  });

  test.each(['paused', 'needs_reauthorization', 'disconnected'] as const)(
    'an instance that is %s gets no run',
    async (status) => {
      const id = await store.addInstance();
      await instances.setStatus(id, status, { from: ['active'] });
      expect(await runs.start(id, both, NOW)).toBeUndefined();
      expect(await runs.lists(id)).toEqual([]);
    },
  );

  test('a claim takes a run over, and its earlier holder writes nothing', async () => {
    const first = await store.claimRun();
    const second = (await runs.claim(first)) ?? expect.unreachable();
    expect(second).toMatchObject({ id: first.run, fence: first.fence + 1, state: 'running' });
    expect([await runs.holds(first), await runs.holds({ ...first, fence: second.fence })]).toEqual([
      false,
      true,
    ]);
    await runs.wait(first, { for: 'limit', until: NOW, ...NO_REQUESTS });
    await runs.fail(first, REFUSED, NOW);
    expect(await runs.finish(first, 0, NOW)).toBeUndefined();
    expect(await runOf(first)).toMatchObject({ state: 'running', finished_at: null, error_kind: null });
  });

  test('a pause ends the claims, and a resumed run goes on from its cursor', async () => {
    const claim = await store.claimRun();
    await store.write(claim, ['{"id":"a"}'], { next: PAGE_2 });
    await instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
    expect(await store.write(claim, ['{"id":"b"}'])).toBeUndefined();
    expect(await runs.claim(claim)).toBeUndefined();
    expect(await runs.open(NOW)).not.toContainEqual(expect.objectContaining({ run: claim.run }));
    expect(await runOf(claim)).toMatchObject({ state: 'waiting', cursor: PAGE_2, finished_at: null });
    await instances.setStatus(claim.instanceId, 'active', { from: ['paused'] });
    expect(await runs.claim(claim)).toMatchObject({ id: claim.run, cursor: PAGE_2, pages: 1 });
  });

  test('a disconnect ends the open run for good', async () => {
    const claim = await store.claimRun();
    await store.tokens.disconnect(claim.instanceId);
    expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
    expect(await runOf(claim)).toMatchObject({ state: 'ended', finished_at: expect.any(Number) });
    await store.addInstance(claim.instanceId);
    const pauses = { intervalMs: 1e9, outageMs: 1e9, failedMs: 1e9 };
    expect(await runs.due('contacts', Date.now(), pauses)).toContain(claim.instanceId);
    const next = await store.claimRun(claim);
    expect(next).toMatchObject({ list: claim.list });
    expect(next.run).toBeGreaterThan(claim.run);
  });

  test('the last fifty runs of a list are kept', async () => {
    const first = await store.copy([]);
    let last = first;
    for (let count = 1; count < 53; count++) last = await store.copy([], first);
    const history = await runs.history(first.list);
    expect(history).toHaveLength(50);
    expect([history[0]?.id, history.every(({ state }) => state === 'finished')]).toEqual([last.run, true]);
    expect((await runs.history(first.list, 2)).map(({ id }) => id)).toEqual([last.run, history[1]?.id]);
  });

  test('a person’s start ends the wait for a retry, and restarts a stuck run', async () => {
    const claim = await store.claimRun();
    await store.write(claim, ['{"id":"a"}'], { next: PAGE_2 });
    const error = { ...REFUSED, at: NOW };
    const wait = { for: 'retry', until: NOW + 999, error, attempt: 3, ...NO_REQUESTS } as const;
    await runs.wait(claim, wait);
    const start = (retries: boolean) => runs.start(claim.instanceId, ['contacts'], NOW, { retries });
    expect(await start(false)).toMatchObject([{ run: claim.run, until: NOW + 999 }]);
    expect(await start(true)).toMatchObject([{ run: claim.run, until: null }]);
    expect(await runOf(claim)).toMatchObject({ cursor: PAGE_2, attempt: 0, waiting_for: 'turn' });

    await runs.wait(claim, { ...wait, hasFailed: true, stuckSince: NOW });
    expect(await start(false)).toMatchObject([{ run: claim.run }]);
    const [again] = (await start(true)) ?? [];
    expect(again?.run).toBeGreaterThan(claim.run);
    expect(await runOf(claim)).toMatchObject({ cursor: null, pages: 0, state: 'waiting' });
    expect(await runs.holds(claim)).toBe(false);
    expect((await runs.history(claim.list))[1]).toMatchObject({ state: 'failed', finished_at: NOW });
  });

  test('a list is behind since its first start, until a run comes to its end', async () => {
    const claim = await store.claimRun();
    await runs.fail(claim, REFUSED, NOW + 1);
    await runs.start(claim.instanceId, ['contacts'], NOW + 2);
    expect(await store.list(claim)).toMatchObject({ behind_since: NOW, run: { started_at: NOW + 2 } });
    await runs.finish(await store.claimRun(claim), 7, NOW + 3);
    expect(await store.list(claim)).toMatchObject({
      behind_since: null,
      run: { state: 'finished', held: 7 },
    });
    await runs.releaseHeld((await runOf(claim)).id);
    expect(await runs.lastFinished(claim.list)).toMatchObject({ held: 0 });
  });

  test('a paused list writes and delivers nothing, and resumes where it stopped', async () => {
    const claim = await store.claimRun();
    await store.write(claim, documentsOf(1), { next: PAGE_2 });
    const other = await store.claimRun({ instanceId: claim.instanceId, resource: 'conversations' });
    const held = (await hold(claim)) ?? expect.unreachable();
    expect(await runs.pause(claim, NOW)).toBe(true);
    expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
    expect(await store.write(other, documentsOf(1))).toMatchObject({ created: 1 });
    expect(await changes.deliver(held, await store.feed(claim.list))).toBeUndefined();
    expect([await runs.claim(claim), await hold(claim)]).toEqual([undefined, undefined]);
    expect([await isOpen(claim), await lags(claim)]).toEqual([false, false]);
    expect(await runs.start(claim.instanceId, ['contacts'], NOW)).toEqual([]);
    // The search index keeps up with what is there.
    expect([await hold(claim, false), await lags(claim, false)]).toMatchObject([{ list: claim.list }, true]);

    expect(await runs.resume(claim)).toBe(true);
    expect([await isOpen(claim), await lags(claim)]).toEqual([true, true]);
    expect(await runs.claim(claim)).toMatchObject({ id: claim.run, cursor: PAGE_2, pages: 1 });
  });

  test('a list is paused and resumed once, even before its first run', async () => {
    const key = { instanceId: await store.addInstance(), resource: 'contacts' };
    expect([await runs.resume(key), await runs.pause(key, NOW), await runs.pause(key, NOW + 1)]).toEqual([
      false,
      true,
      false,
    ]);
    expect(await store.list(key)).toMatchObject({ paused_at: NOW, run: undefined });
    const pauses = { intervalMs: 1, outageMs: 1, failedMs: 1 };
    expect(await runs.due('contacts', NOW, pauses)).not.toContain(key.instanceId);
    expect([await runs.resume(key), await runs.resume(key)]).toEqual([true, false]);
    expect(await runs.due('contacts', NOW, pauses)).toContain(key.instanceId);
    await store.tokens.disconnect(key.instanceId);
    const nobody = { instanceId: 'ins_nobody', resource: 'contacts' };
    expect([await runs.pause(key, NOW), await runs.setInterval(key, 5)]).toEqual([false, false]);
    expect([await runs.pause(nobody, NOW), await runs.setInterval(nobody, 5)]).toEqual([false, false]);
  });

  describe('a list fails', () => {
    const failAt = (claim: RunClaim, at: number) =>
      runs.wait(claim, { for: 'retry', until: null, error: { ...REFUSED, at }, ...NO_REQUESTS });
    const failingSince = async (claim: TestClaim) => (await store.list(claim)).failing_since;

    test('since the first failure, over its runs, until a page comes', async () => {
      const claim = await store.claimRun();
      await failAt(claim, NOW + 1);
      await failAt(claim, NOW + 2);
      await runs.fail(claim, REFUSED, NOW + 3);
      const next = await store.claimRun(claim);
      await runs.wait(next, { for: 'limit', until: NOW + 9, ...NO_REQUESTS });
      expect(await failingSince(claim)).toBe(NOW + 1);
      await store.write(next, [], { next: PAGE_2 });
      expect(await failingSince(claim)).toBeNull();
      await failAt(next, NOW + 4);
      expect(await failingSince(claim)).toBe(NOW + 4);
      await runs.finish(next, 0, NOW + 5);
      expect(await failingSince(claim)).toBeNull();
    });

    test('and one of several workers takes it once', async () => {
      const claim = await store.claimRun();
      const take = async (since: number) =>
        (await Promise.all([1, 2, 3].map(() => runs.takeFailing(since, NOW + 99))))
          .flat()
          .filter(({ instanceId }) => instanceId === claim.instanceId);
      await failAt(claim, NOW + 10);
      expect(await take(NOW + 9)).toEqual([]);
      expect(await take(NOW + 10)).toMatchObject([
        { resource: 'contacts', since: NOW + 10, run: { error_kind: 'refused' } },
      ]);
      await failAt(claim, NOW + 20);
      expect(await take(NOW + 20)).toEqual([]);
      await store.write(claim, [], { next: PAGE_2 });
      await failAt(claim, NOW + 30);
      await instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
      expect(await take(NOW + 30)).toEqual([]);
      await instances.setStatus(claim.instanceId, 'active', { from: ['paused'] });
      expect(await take(NOW + 30)).toHaveLength(1);
    });
  });
});
