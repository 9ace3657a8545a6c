import pg from 'pg';
import { describe, expect, test, vi } from 'vitest';
import type { ListKey } from '../../src/store/runs.ts';
import { DATABASES, INTERVAL_MS, NOW, openTestStore, type TestClaim, type TestStore } from './test-store.ts';

const REFUSED = { kind: 'refused', detail: 'Refused (404).' } as const;
const ENDED = { kind: 'reauthorize', detail: 'Refused.' } as const;
const NO_REQUESTS = { requests: 0, refused: 0 };
const IN_RUN = { isInRun: true, isUnsure: true };
const ALONE = { isInRun: false, isUnsure: false };
const NEXT = { check_due_at: NOW, check_every: 1, check_after: 0, ran_out: 0 };
const CHECK_AT = NOW + 60_000;
const FULL_AT = NOW + INTERVAL_MS;
/** A list with a job is not due before. */
const LOST_JOB_MS = 30_000;

type Act = (store: TestStore, key: ListKey) => Promise<unknown>;
const status: (to: 'paused' | 'active') => Act = (to) => (store, key) =>
  store.instances.setStatus(key.instanceId, to, { from: ['active', 'paused'] });
const reject: Act = async ({ tokens }, { instanceId }) =>
  tokens.reject((await tokens.find(instanceId)) ?? expect.unreachable(), ENDED);
const refresh: Act = async ({ tokens }, { instanceId }) => {
  const { instance_id, version, ...token } = (await tokens.find(instanceId)) ?? expect.unreachable();
  await tokens.save({ instance_id, version }, token, 0);
};
const install: Act = (store, { instanceId }) => store.addInstance(instanceId);

/** What stops a list, and what ends that. */
const STOPS: [string, Act, Act][] = [
  [
    'it is paused',
    ({ dueLists }, key) => dueLists.pause(key, NOW),
    ({ dueLists }, key) => dueLists.resume(key),
  ],
  ['its instance is paused', status('paused'), status('active')],
  ['its instance is disconnected', ({ tokens }, { instanceId }) => tokens.disconnect(instanceId), install],
  ['its token is refused, up to a new install', reject, install],
  ['its token is refused, up to one that works', reject, refresh],
];

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { db, dueLists, runs } = store;
  const dueAt = async (key: ListKey) => (await store.list(key)).due_at;
  /** A list with a full run behind it, and a check that is due before the next one. */
  async function finished(check_due_at: number | null = CHECK_AT): Promise<TestClaim> {
    const claim = await store.claimRun();
    await store.finish(claim, { check_due_at });
    return claim;
  }
  test.each(STOPS)('a list is not due while %s', async (_what, stop, end) => {
    const [idle, open] = [await finished(NOW), await store.claimRun()];
    await runs.wait(open, { for: 'retry', until: NOW + 999, ...NO_REQUESTS });
    const { claim } = (await runs.claim(idle, NOW)) ?? expect.unreachable();
    for (const key of [idle, open]) {
      await stop(store, key);
      // Neither the worker that had it, nor another action, nor a look for work make it due.
      await runs.endCheck(claim, ALONE, NEXT);
      await runs.wait(open, { for: 'retry', until: NOW + 999, ...NO_REQUESTS });
      await dueLists.setInterval(key, 60, INTERVAL_MS);
      expect([await runs.claim(key, NOW), await dueAt(key)]).toEqual([undefined, null]);
      await end(store, key);
    }
    // A disconnect has ended the open run: the next one begins at once.
    const isEnded = (await store.list(open)).run?.state === 'ended';
    expect([await dueAt(idle), await dueAt(open)]).toEqual([NOW, isEnded ? NOW : NOW + 999]);
  });

  test.each<[string, number | null, (claim: TestClaim) => Promise<unknown>]>([
    ['a finished run', FULL_AT, (claim) => store.finish(claim)],
    ['a finished run, with checks', NOW + 7, (claim) => store.finish(claim, { check_due_at: NOW + 7 })],
    ['a finished run that is repeated', NOW, (claim) => store.finish(claim, { isRepeated: true })],
    ['a first run that failed', NOW + 8, (claim) => runs.fail(claim, REFUSED, NOW, NOW + 8)],
    [
      'a later run that failed, with checks',
      CHECK_AT,
      async (claim) => {
        await store.finish(claim, { check_due_at: CHECK_AT });
        await runs.fail(await store.claimRun(claim), REFUSED, NOW, FULL_AT);
      },
    ],
    ['a wait', NOW + 9, (claim) => runs.wait(claim, { for: 'limit', until: NOW + 9, ...NO_REQUESTS })],
    ['a turn', 0, (claim) => runs.wait(claim, { for: 'turn', until: null, ...NO_REQUESTS })],
  ])('after %s a list is due at its time', async (_what, at, end) => {
    const claim = await store.claimRun();
    // There is nothing to check before a list was read to its end.
    await db.updateTable('lists').set({ check_due_at: NOW }).where('id', '=', claim.list).execute();
    await end(claim);
    expect(await dueAt(claim)).toBe(at);
  });

  test.each([
    ['the next check', ALONE, CHECK_AT, CHECK_AT],
    ['a full run that comes first', ALONE, FULL_AT + 1, FULL_AT],
    ['the full run, without checks', ALONE, null, FULL_AT],
    ['the open run', IN_RUN, CHECK_AT, 5],
  ])('after a check a list is due for %s', async (_what, ends, check_due_at, due) => {
    const first = await finished(NOW);
    const claim = ends.isInRun ? await store.claimRun(first) : (await runs.claim(first, NOW))?.claim;
    if (claim === undefined) return expect.unreachable();
    await db.updateTable('lists').set({ due_at: 5 }).where('id', '=', first.list).execute();
    const values = { checked_at: NOW + 3, check_due_at, check_every: 2, check_after: 4, ran_out: 1 };
    expect(await runs.endCheck(claim, ends, values)).toBe(true);
    const is_unsure = ends.isUnsure ? 1 : 0;
    expect(await store.list(first)).toMatchObject({ ...values, due_at: due, run: { is_unsure } });
  });

  test('an interval moves the next full run, counted from the last one', async () => {
    const [idle, unread] = [await finished(null), await store.claimRun()];
    await runs.wait(unread, { for: 'limit', until: NOW + 9, ...NO_REQUESTS });
    for (const key of [idle, unread]) await dueLists.setInterval(key, 5, 300_000);
    const moved = { interval_minutes: 5, full_due_at: NOW + 300_000, due_at: NOW + 300_000 };
    expect(await store.list(idle)).toMatchObject(moved);
    expect(await store.list(unread)).toMatchObject({ full_due_at: NOW, due_at: NOW + 9 });
  });

  test('new resources get lists, and switched-on checks begin at once', async () => {
    const own = await openTestStore(kind);
    const prepare = (hasChecks: boolean, intervalMs = INTERVAL_MS) => {
      const resources = ['contacts', 'tags'].map((name) => ({ name, intervalMs }));
      return own.dueLists.prepare(resources, NOW, { hasChecks });
    };
    const [read, unread] = [await own.copy([]), await own.claimRun()];
    const [paused, gone] = [await own.addInstance(), await own.addInstance()];
    await own.runs.wait(unread, { for: 'retry', until: NOW + 999, ...NO_REQUESTS });
    await own.instances.setStatus(paused, 'paused', { from: ['active'] });
    await own.tokens.disconnect(gone);
    const listsOf = async (id: string) => {
      const lists = await own.runs.lists(id);
      return lists.map(({ resource, due_at, check_due_at }) => [resource, due_at, check_due_at]).toSorted();
    };
    const lists = async () => Promise.all([read.instanceId, unread.instanceId, paused, gone].map(listsOf));
    await prepare(false);
    const [of, fresh] = [(contacts: number | null) => ['contacts', contacts, null], ['tags', 0, null]];
    const without = [[of(FULL_AT), fresh], [of(NOW + 999), fresh], [of(null), ['tags', null, null]], []];
    expect(await lists()).toEqual(without);
    await prepare(true);
    expect(await lists()).toEqual([[['contacts', NOW, NOW], fresh], ...without.slice(1)]);
    await prepare(false);
    expect((await own.list(read)).check_due_at).toBeNull();
    await prepare(true);
    // A shorter interval brings the next full run forward, a longer one leaves it as it is; the same again does nothing.
    const fullDueAt = async () => (await own.list(read)).full_due_at;
    for (const minutes of [5, 90]) await prepare(true, minutes * 60_000);
    expect(await fullDueAt()).toBe(NOW + 5 * 60_000);
    await own.db
      .updateTable('lists')
      .set({ full_due_at: NOW * 2 })
      .where('id', '=', read.list)
      .execute();
    await prepare(true, 90 * 60_000);
    expect(await fullDueAt()).toBe(NOW * 2);
  });

  test('a sweep takes what is due, the oldest first, of the resources it knows', async () => {
    const own = await openTestStore(kind);
    const take = async (now: number, names = ['contacts'], limit = 9) =>
      (await own.dueLists.takeDue(names, now, limit)).map(({ list, pages, until }) => [list, pages, until]);
    const first = await own.claimRun();
    await own.finish(first, { check_due_at: NOW + 2 });
    const [full, run] = [await own.copy([]), await own.claimRun()];
    await own.write(run, ['{"id":"a"}'], { next: 'https://x.example/2' });
    await own.runs.wait(run, { for: 'retry', until: NOW + 1, ...NO_REQUESTS });
    const unknown = await own.claimRun({ instanceId: full.instanceId, resource: 'tags' });
    expect(await take(NOW)).toEqual([]);
    expect(await take(NOW, ['contacts', 'tags'])).toEqual([[unknown.list, 0, null]]);
    const [open, check] = [
      [run.list, 1, NOW + 1],
      [first.list, undefined, null],
    ];
    expect(await take(NOW + 2, ['contacts'], 1)).toEqual([open]);
    expect(await take(NOW + 2)).toEqual([check]);
    // What has a job needs no other one, unless that was lost.
    expect(await take(NOW + 3)).toEqual([]);
    expect((await take(NOW + 2 + LOST_JOB_MS)).toSorted()).toEqual([check, open].toSorted());
    expect((await take(FULL_AT)).toSorted()).toEqual(
      [[first.list, 0, null], [full.list, 0, null], open].toSorted(),
    );
    expect((await own.list(full)).run).toMatchObject({ state: 'waiting', started_at: FULL_AT, pages: 0 });
    expect(await own.list(full)).toMatchObject({ behind_since: FULL_AT, full_due_at: FULL_AT });
  });

  test('two sweeps at once start each run once, and do not wait for each other', async () => {
    const own = await openTestStore(kind);
    const claims = await Promise.all(Array.from({ length: 30 }, () => own.copy([])));
    const sweeps = Array.from({ length: 4 }, () => own.dueLists.takeDue(['contacts'], FULL_AT, 20));
    const taken = (await Promise.all(sweeps)).flat().map(({ list }) => list);
    const rest = (await own.dueLists.takeDue(['contacts'], FULL_AT, 20)).map(({ list }) => list);
    expect([...taken, ...rest].toSorted((one, other) => one - other)).toEqual(
      claims.map(({ list }) => list).toSorted((one, other) => one - other),
    );
    for (const claim of claims) expect(await own.runs.history(claim.list, 'full')).toHaveLength(2);
  });

  if (kind === 'postgres') {
    test('the statements of a sweep do not grow with the lists that are due', async () => {
      const own = await openTestStore(kind);
      const ids = await Promise.all(Array.from({ length: 120 }, () => own.addInstance()));
      const resources = ['contacts', 'conversations'];
      await own.dueLists.prepare(
        resources.map((name) => ({ name, intervalMs: INTERVAL_MS })),
        NOW,
        { hasChecks: true },
      );
      const queries = vi.spyOn(pg.Client.prototype, 'query');
      const count = async (limit: number) => {
        queries.mockClear();
        const taken = await own.dueLists.takeDue(resources, NOW, limit);
        return { taken: taken.length, statements: queries.mock.calls.length };
      };
      const [few, many] = [await count(10), await count(200)];
      expect([few.taken, many.taken]).toEqual([10, 200]);
      expect(many.statements).toBe(few.statements);
      expect(many.statements).toBeLessThan(12);
      await own.dueLists.takeDue(resources, NOW, 2 * ids.length);
      // Mostly nothing is due.
      expect(await count(200)).toEqual({ taken: 0, statements: 1 });
      queries.mockRestore();
    });
  }
});
