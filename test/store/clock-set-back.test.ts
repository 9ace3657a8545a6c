import { describe, expect, test } from 'vitest';
import { NOW, openTestStore, pageOf } from './test-store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NEXT = 'https://x.example/next';

const store = await openTestStore();
const { pages, parked, quarantine, runs } = store;

/** A run that began when the clock was so far ahead, and what is done in it at other times. */
async function runAhead(aheadMs: number) {
  const key = { instanceId: await store.addInstance(), resource: 'contacts' };
  const start = async (now: number) => {
    await runs.start(key, now);
    const run = (await runs.claim(key)) ?? expect.unreachable();
    return { run, claim: { ...key, fence: run.fence } };
  };
  const { claim } = await start(NOW + aheadMs);
  return {
    key,
    claim,
    start,
    park: async (id: string, now: number, fence = claim.fence) => {
      const page = pageOf([`{"id":"${id}"}`], NEXT);
      const changes = await pages.compare({ instance_id: key.instanceId, resource: key.resource }, page);
      await pages.commit({ ...key, fence }, page, changes, now, { error: 'It failed.', tries: 5 });
    },
    /** What a run tries, each batch in vain. */
    tries: async ({ fence, startedAt, now }: { fence: number; startedAt: number; now: number }) => {
      const tried: string[] = [];
      for (;;) {
        const due = await parked.nextDue({ ...key, fence }, startedAt);
        if (due === undefined) return tried;
        tried.push(...due.created);
        if (tried.length > 10) return expect.unreachable('it tries again and again');
        await parked.begin({ ...key, fence }, due.place, 'Again.', now);
      }
    },
  };
}

describe('when the clock is set back', () => {
  test('a run that is said to have ended later than now has ended now', async () => {
    const { key, claim } = await runAhead(48 * HOUR_MS);
    await runs.finish(claim, NOW + 48 * HOUR_MS);
    const other = await store.claimRun();
    await runs.finish(other.claim, NOW - 5);
    await runs.endNoLater(NOW);
    expect((await runs.find(key))?.finished_at).toBe(NOW);
    expect((await runs.find(other.claim))?.finished_at).toBe(NOW - 5);
  });

  test('a list that is said to be behind since later than now is behind since now', async () => {
    const { key } = await runAhead(48 * HOUR_MS);
    const other = await store.claimRun();
    await runs.endNoLater(NOW + 1);
    expect(await runs.find(key)).toMatchObject({ behind_since: NOW + 1, state: 'running' });
    expect((await runs.find(other.claim))?.behind_since).toBe(NOW);
  });

  test.each([
    ['an hour', HOUR_MS],
    ['two days', 48 * HOUR_MS],
  ])('by %s, the next run tries a batch that was parked before, once', async (_by, aheadMs) => {
    const { claim, start, park, tries } = await runAhead(aheadMs);
    await park('a', NOW + aheadMs + 1);
    await runs.finish(claim, NOW + aheadMs + 2);
    await runs.endNoLater(NOW);
    const next = await start(NOW + 3);
    const now = { fence: next.run.fence, startedAt: NOW + 3, now: NOW + 4 };
    expect(await tries(now)).toEqual(['{"id":"a"}']);
    expect(await tries(now)).toEqual([]);
  });

  test('a batch that has to wait for some minutes waits all the same', async () => {
    const { claim, start, park, tries } = await runAhead(0);
    await park('a', NOW + 1);
    const { place = 0 } = (await parked.nextDue(claim, NOW + 2)) ?? {};
    await parked.keep(claim, place, 'Later.', NOW + 15 * MINUTE_MS);
    await runs.finish(claim, NOW + 2);
    const next = await start(NOW + 3);
    expect(await tries({ fence: next.run.fence, startedAt: NOW + 3, now: NOW + 4 })).toEqual([]);
  });

  test('a run that goes on with a start ahead tries each batch once, so that pages come in between', async () => {
    const { claim, park, tries } = await runAhead(HOUR_MS);
    for (const id of ['a', 'b']) await park(id, NOW + 1);
    const now = { fence: claim.fence, startedAt: NOW + HOUR_MS, now: NOW + 2 };
    expect(await tries(now)).toEqual(['{"id":"a"}', '{"id":"b"}']);
    expect(await tries(now)).toEqual([]);
  });

  test('a run that failed with a start ahead, and goes on at its place, tries each batch once more', async () => {
    const { claim, start, park, tries } = await runAhead(HOUR_MS);
    await park('a', NOW + HOUR_MS + 1);
    await park('b', NOW + HOUR_MS + 2);
    await runs.fail(claim, { error: 'It failed.', keepsPlace: true, now: NOW + 2 });
    const { run } = await start(NOW + 3);
    expect(run.started_at).toBe(NOW + HOUR_MS);
    const now = { fence: run.fence, startedAt: NOW + HOUR_MS, now: NOW + 4 };
    expect(await tries(now)).toEqual(['{"id":"a"}', '{"id":"b"}']);
    expect(await tries(now)).toEqual([]);
  });

  test('what a run has met before and after stays on the list; what only a run before has met, does not', async () => {
    const { key, claim, start } = await runAhead(HOUR_MS);
    await store.write(claim, ['{"gone":1}', '{"still":1}'], { next: NEXT, now: NOW + HOUR_MS });
    await runs.finish(claim, NOW + HOUR_MS + 1);
    const { run, claim: second } = await start(NOW + 10 * MINUTE_MS);
    await store.write(second, ['{"still":1}'], { next: NEXT, now: NOW + 10 * MINUTE_MS + 1 });
    // And back once more.
    await store.write(second, ['{"new":1}'], { next: NEXT, now: NOW });
    await quarantine.forgetUnseen(key, run.started_at ?? 0);
    expect((await quarantine.list(key, 5)).map(({ excerpt }) => excerpt).toSorted()).toEqual([
      '{"new":1}',
      '{"still":1}',
    ]);
  });
});
