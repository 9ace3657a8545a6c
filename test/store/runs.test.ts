import { describe, expect, test } from 'vitest';
import { readItems } from '../../src/store/page-items.ts';
import type { ListClaim, ListKey } from '../../src/store/runs.ts';
import {
  collect,
  DATABASES,
  documentsOf,
  INTERVAL_MS,
  NOW,
  openTestStore,
  type TestClaim,
} from './test-store.ts';

const PAGE_2 = 'https://x.example/contacts?page_token=2';
const REFUSED = { kind: 'refused', detail: 'The service refused the request (404).' } as const;
const NO_REQUESTS = { requests: 0, refused: 0 };
/** Every record of this file. */
const ANY = Array.from({ length: 9_999 }, (_, id) => id);
const NEXT = { check_due_at: NOW + 1, check_every: 1, check_after: 0, ran_out: 0 };

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, db, dueLists, runs, instances } = store;
  const both = ['contacts', 'conversations'];
  const runOf = async (claim: TestClaim) => (await store.list(claim)).run ?? expect.unreachable();

  const hold = ({ instanceId, resource }: TestClaim, whileActive = true) =>
    changes.claim({ instanceId, resource, consumer: 'handler' }, { whileActive, alone: true, now: NOW });
  const lags = async ({ instanceId, resource }: TestClaim, whileActive = true) => {
    const all = await collect(changes.lagging('handler', { now: NOW, whileActive }));
    return all.flat().some((key) => key.instanceId === instanceId && key.resource === resource);
  };
  const isDue = async ({ instanceId, resource }: ListKey, now = NOW) => {
    const list = (await runs.lists(instanceId)).find((one) => one.resource === resource);
    return list?.due_at != null && list.due_at <= now;
  };

  test('eight starts at once open one run for each list', async () => {
    const id = await store.addInstance();
    const starts = await Promise.all(Array.from({ length: 8 }, () => runs.start(id, both, NOW)));
    expect(starts[0]).toMatchObject(both.map((resource) => ({ resource, until: null, pages: 0 })));
    expect(starts).toEqual(Array(8).fill(starts[0]));
    for (const { list } of starts[0] ?? []) expect(await runs.history(list, 'full')).toHaveLength(1);
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

  test.each<[string, number | null | undefined, 'now' | 'later' | null, 'run' | 'check' | null]>([
    ['of a list that nobody has read', undefined, null, null],
    ['of a check that is not due yet', NOW + 1, null, null],
    ['of a check', NOW, null, 'check'],
    ['of an open run and a check', NOW, 'now', 'run'],
    ['of an open run that waits', null, 'later', 'run'],
  ])('a claim %s takes the run, else the check that is due', async (_what, check_due_at, open, takes) => {
    const first = await store.claimRun();
    if (check_due_at === undefined) await runs.fail(first, REFUSED, NOW, NOW + 2);
    else await store.finish(first, { check_due_at });
    const holder = open === null ? first : await store.claimRun(first);
    if (open === 'later') await runs.wait(holder, { for: 'retry', until: NOW + 999, ...NO_REQUESTS });
    await db.updateTable('lists').set({ due_at: 5 }).where('id', '=', first.list).execute();
    const claimed = await runs.claim(first, NOW);
    expect(claimed?.claim.run).toBe(takes === null ? undefined : holder.run);
    expect(claimed?.run?.id).toBe(takes === 'run' ? holder.run : undefined);
    // Even without anything to do: then the list is due at its time again.
    const due_at = takes === null ? (check_due_at ?? NOW + 2) : 5;
    expect(await store.list(first)).toMatchObject({ fence: holder.fence + 1, due_at });
  });

  const marking = (claim: TestClaim) => ({ beforeRun: claim.run, counter: claim.run, claim });
  const read = readItems(['{"id":"0","n":2}', '{"id":"new"}', '7']);
  const WRITES: [string, (claim: TestClaim) => Promise<unknown>, nothing?: unknown][] = [
    ['a page', (claim) => store.write(claim, ['{"id":"0","n":2}', '{"id":"new"}', '7'])],
    ['a check’s page', (claim) => store.pages.commitCheck(claim, read, undefined, NOW)],
    ['records it asked for', (claim) => store.pages.commitAsked(claim, read, NOW), false],
    ['deletions', (claim) => store.deletions.markPortion(claim.list, marking(claim), 0, NOW), 'lost'],
    ['some deletions', (claim) => store.deletions.markRecords(claim.list, ANY, marking(claim), NOW), false],
    ['a wait', (claim) => runs.wait(claim, { for: 'limit', until: NOW, requests: 1, refused: 1 })],
    ['a failure', (claim) => runs.fail(claim, REFUSED, NOW, NOW)],
    ['the end of a run', (claim) => store.finish(claim)],
    ['the end of a check', (claim) => runs.endCheck(claim, { isInRun: true, isUnsure: true }, NEXT), false],
  ];
  test.each(WRITES)('the earlier holder of a list cannot write %s', async (_what, write, nothing) => {
    const claim = await store.claimRun(await store.copy(documentsOf(2)));
    await store.write(claim, []);
    const rows = () =>
      Promise.all(
        (['runs', 'records', 'seen', 'rejected_records'] as const).map((table) =>
          db.selectFrom(table).selectAll().where('list', '=', claim.list).execute(),
        ),
      ).then(async (of) => [await store.list(claim), ...of.map((all) => new Set(all))]);
    const before = await rows();
    // Of an earlier fence; or it made a commit that a crash of the database took back.
    for (const stale of [{ fence: claim.fence - 1 }, { commits: claim.commits + 1 }]) {
      expect(await write({ ...claim, ...stale })).toBe(nothing);
      expect(await rows()).toEqual(before);
    }
    await write(claim);
    expect(await rows()).not.toEqual(before);
    expect((await store.list(claim)).commits).toBe(claim.commits);
  });

  test.each([
    ['its only page', { pages: 0 }],
    ['its last page', { cursor: PAGE_2 }],
  ])('a run that lost %s in a crash neither deletes nor ends', async (_what, row) => {
    const claim = await store.claimRun(await store.copy(documentsOf(2)));
    await store.write(claim, []);
    await db.updateTable('runs').set(row).where('id', '=', claim.run).execute();
    expect(await store.deletions.markPortion(claim.list, marking(claim), 0, NOW)).toBe('lost');
    expect(await store.deletions.markRecords(claim.list, ANY, marking(claim), NOW)).toBe(false);
    const end = { missing: 0, held: 0, heldRun: null, isRepeated: false, ...NO_REQUESTS };
    expect(await runs.finish(claim, end, { ...NEXT, full_due_at: NOW }, NOW)).toBeUndefined();
    expect(await store.list(claim)).toMatchObject({ stored: 2, run: { state: 'running' } });
  });

  test('a start makes the commits of a check that is under way void', async () => {
    const first = await store.copy(documentsOf(1));
    await store.finish(await store.claimRun(first), { check_due_at: NOW });
    const { claim } = (await runs.claim(first, NOW)) ?? expect.unreachable();
    await runs.start(first.instanceId, ['contacts'], NOW, { retries: true });
    expect(await store.pages.commitCheck(claim, read, undefined, NOW)).toBeUndefined();
    expect(await runs.endCheck(claim, { isInRun: false, isUnsure: false }, NEXT)).toBe(false);
    expect(await store.list(first)).toMatchObject({ stored: 1, due_at: NOW, run: { state: 'waiting' } });
  });

  test('a person’s start ends the wait for a retry, and restarts a stuck run', async () => {
    const claim = await store.claimRun();
    await store.write(claim, ['{"id":"a"}'], { next: PAGE_2 });
    const error = { ...REFUSED, at: NOW };
    const wait = { for: 'retry', until: NOW + 999, error, attempt: 3, ...NO_REQUESTS } as const;
    await runs.wait(claim, wait);
    const start = (retries: boolean) => runs.start(claim.instanceId, ['contacts'], NOW, { retries });
    expect(await start(false)).toMatchObject([{ list: claim.list, until: NOW + 999, pages: 1 }]);
    expect(await start(true)).toMatchObject([{ list: claim.list, until: null, pages: 1 }]);
    expect(await runOf(claim)).toMatchObject({ cursor: PAGE_2, attempt: 0, waiting_for: 'turn' });

    await runs.wait(claim, { ...wait, hasFailed: true, stuckSince: NOW });
    await start(false);
    expect((await runOf(claim)).id).toBe(claim.run);
    expect(await start(true)).toMatchObject([{ list: claim.list, until: null, pages: 0 }]);
    expect((await runOf(claim)).id).toBeGreaterThan(claim.run);
    expect(await runOf(claim)).toMatchObject({ cursor: null, pages: 0, state: 'waiting' });
    expect(await runs.holds(claim)).toBe(false);
    expect((await runs.history(claim.list, 'full'))[1]).toMatchObject({ state: 'failed', finished_at: NOW });
  });

  test('a list is behind since its first start, until a run comes to its end', async () => {
    const claim = await store.claimRun();
    await runs.fail(claim, REFUSED, NOW + 1, NOW);
    await runs.start(claim.instanceId, ['contacts'], NOW + 2);
    expect(await store.list(claim)).toMatchObject({ behind_since: NOW, run: { started_at: NOW + 2 } });
    await store.finish(await store.claimRun(claim), { missing: 9, held: 7, heldRun: 1, now: NOW + 3 });
    expect(await store.list(claim)).toMatchObject({
      behind_since: null,
      ...{ missing: 9, held: 7, held_run: 1, held_since: NOW + 3 },
      run: { state: 'finished', missing: 9, held: 7 },
    });
    await runs.releaseHeld(await store.list(claim));
    const released = { missing: 2, held: 0, held_run: null, held_since: null, run: { held: 0 } };
    expect(await store.list(claim)).toMatchObject(released);
  });

  test('the sums of a month outlive the runs that the history drops', async () => {
    const DAY_MS = 24 * 60 * 60_000;
    const claim = await store.claimRun();
    const { list } = claim;
    await store.write(claim, documentsOf(3));
    await store.finish(claim, { now: NOW });
    const failed = await store.claimRun(claim);
    await runs.fail(failed, REFUSED, NOW + 1, NOW);
    const sums = async (now: number) => {
      const days = [...(await runs.days(list, now)).values()];
      return days.map(({ list: _, day, ...sum }) => ({ ...sum, ago: Math.floor(now / DAY_MS) - day }));
    };
    const none = { failed: 0, created: 0, changed: 0, deleted: 0, first_copy: 0 };
    const first = { ...none, ago: 0, runs: 1, failed: 1, first_copy: 3 };
    expect(await sums(NOW)).toEqual([first]);
    // An outage that passes leaves a mark, too, and the open run counts.
    const troubled = await store.claimRun(claim);
    const error = { kind: 'timeout', detail: 'No answer.', at: NOW + DAY_MS } as const;
    await runs.wait(troubled, { for: 'retry', until: null, error, requests: 1, refused: 0, hasFailed: true });
    expect(await sums(NOW + DAY_MS)).toEqual([
      { ...first, ago: 1 },
      { ...none, ago: 0, runs: 0, failed: 1 },
    ]);

    for (let run = 0; run < 60; run++) {
      const next = await store.claimRun(claim);
      await store.write(next, [`{"id":"0","run":${run}}`, `{"id":"new ${run}"}`]);
      await store.finish(next, { now: NOW + DAY_MS });
    }
    expect(await runs.history(list, 'full', 99)).toHaveLength(50);
    const busy = { ...none, ago: 0, runs: 60, failed: 1, created: 60, changed: 60 };
    expect(await sums(NOW + DAY_MS)).toEqual([{ ...first, ago: 1 }, busy]);
    expect(await sums(NOW + 30 * DAY_MS)).toEqual([{ ...busy, ago: 29 }]);

    // What nobody sees any more goes with the next run that the history drops.
    await runs.start(claim.instanceId, ['contacts'], NOW + 30 * DAY_MS);
    const kept = await db.selectFrom('days').select('day').where('list', '=', list).execute();
    expect(kept).toEqual([{ day: Math.floor(NOW / DAY_MS) + 1 }]);
  });

  test('a paused list writes and delivers nothing, and resumes where it stopped', async () => {
    const claim = await store.claimRun();
    await store.write(claim, documentsOf(1), { next: PAGE_2 });
    const other = await store.claimRun({ instanceId: claim.instanceId, resource: 'conversations' });
    const held = await store.hold(claim);
    expect(await dueLists.pause(claim, NOW)).toBe(true);
    expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
    expect(await store.write(other, documentsOf(1))).toMatchObject({ created: 1 });
    expect(await changes.deliver(held, await store.feed(claim.list), NOW)).toBeUndefined();
    expect([await runs.claim(claim, NOW), await hold(claim)]).toEqual([undefined, undefined]);
    expect([await isDue(claim), await lags(claim)]).toEqual([false, false]);
    expect(await runs.start(claim.instanceId, ['contacts'], NOW)).toEqual([]);
    // The search index keeps up with what is there.
    expect([await hold(claim, false), await lags(claim, false)]).toMatchObject([{ list: claim.list }, true]);

    expect(await dueLists.resume(claim)).toBe(true);
    expect([await isDue(claim), await lags(claim)]).toEqual([true, true]);
    expect(await runs.claim(claim, NOW)).toMatchObject({ run: { id: claim.run, cursor: PAGE_2, pages: 1 } });
  });

  test('a list is paused and resumed once, even before its first run', async () => {
    const key = { instanceId: await store.addInstance(), resource: 'contacts' };
    expect([
      await dueLists.resume(key),
      await dueLists.pause(key, NOW),
      await dueLists.pause(key, NOW + 1),
    ]).toEqual([false, true, false]);
    expect(await store.list(key)).toMatchObject({ paused_at: NOW, run: undefined });
    expect(await isDue(key)).toBe(false);
    expect([await dueLists.resume(key), await dueLists.resume(key)]).toEqual([true, false]);
    expect(await isDue(key)).toBe(true);
    await store.tokens.disconnect(key.instanceId);
    const nobody = { instanceId: 'ins_nobody', resource: 'contacts' };
    for (const none of [key, nobody]) {
      expect([await dueLists.pause(none, NOW), await dueLists.setInterval(none, 5, INTERVAL_MS)]).toEqual([
        false,
        false,
      ]);
    }
  });

  describe('a list fails', () => {
    const failAt = (claim: ListClaim, at: number) =>
      runs.wait(claim, { for: 'retry', until: null, error: { ...REFUSED, at }, ...NO_REQUESTS });
    const failingSince = async (claim: TestClaim) => (await store.list(claim)).failing_since;

    test('since the first failure, over its runs, until a page comes', async () => {
      const claim = await store.claimRun();
      await failAt(claim, NOW + 1);
      await failAt(claim, NOW + 2);
      await runs.fail(claim, REFUSED, NOW + 3, NOW);
      const next = await store.claimRun(claim);
      await runs.wait(next, { for: 'limit', until: NOW + 9, ...NO_REQUESTS });
      expect(await failingSince(claim)).toBe(NOW + 1);
      await store.write(next, [], { next: PAGE_2 });
      expect(await failingSince(claim)).toBeNull();
      await failAt(next, NOW + 4);
      expect(await failingSince(claim)).toBe(NOW + 4);
      await store.finish(next);
      expect(await failingSince(claim)).toBeNull();
    });

    test('and one of several workers takes it once', async () => {
      const claim = await store.claimRun();
      const take = async (since: number) =>
        (await Promise.all([1, 2, 3].map(() => dueLists.takeFailing(since, NOW + 99, 9))))
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
