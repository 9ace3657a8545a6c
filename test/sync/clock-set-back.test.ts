import { expect, test } from 'vitest';
import { ServiceError } from '../../src/client/errors.ts';
import { tellOwnLogic } from '../../src/sync/own-logic-parking.ts';
import { startDueRuns } from '../../src/sync/schedule.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/slice-parts.ts';
import { beginTurn } from '../../src/sync/turn.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const CONTACTS = { name: 'contacts', title: 'Contacts', route: '/contacts' };

const store = await openTestStore();
const { runs } = store;
const context = { logger: testLogger().logger, signal: new AbortController().signal } as SliceContext;

test('runs that ended two days ahead of a clock that was set back start an interval later, and as often as ever then', async () => {
  const finished = await store.claimRun();
  await runs.finish(finished.claim, NOW + 2 * DAY_MS);
  const failed = await store.claimRun();
  await runs.fail(failed.claim, { error: 'x', keepsPlace: false, now: NOW + 2 * DAY_MS });
  const states = async (now: number) => {
    await startDueRuns({ runs, resources: [CONTACTS], intervalMs: 60 * MINUTE_MS, now: () => now });
    const all = [await runs.find(finished.claim), await runs.find(failed.claim)];
    return all.map((run) => run?.state);
  };
  expect(await states(NOW)).toEqual(['idle', 'failed']);
  expect(await states(NOW + 10 * MINUTE_MS)).toEqual(['idle', 'waiting']);
  expect(await states(NOW + 60 * MINUTE_MS - 1)).toEqual(['idle', 'waiting']);
  expect(await states(NOW + 60 * MINUTE_MS)).toEqual(['waiting', 'waiting']);
});

test('a run that has been stuck since a moment ahead gives its place up within about an hour all the same', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/contacts?page_token=2' });
  await runs.wait(claim, { for: 'retry', until: null, attempt: 6, stuckSince: NOW + 2 * DAY_MS });
  const fail = async (now: number) => {
    const parts = { ...store, now: () => now } as unknown as SyncParts;
    const run = (await runs.find(claim)) ?? expect.unreachable();
    await endSlice(parts, claim, run, new ServiceError('wait', 'It has trouble.'), context, true);
    return runs.find(claim);
  };
  expect(await fail(NOW)).toMatchObject({ state: 'failed', stuck_since: NOW });
  expect((await fail(NOW + 44 * MINUTE_MS))?.cursor).not.toBeNull();
  expect(await fail(NOW + 45 * MINUTE_MS)).toMatchObject({ cursor: null, stuck_since: null });
});

test('a batch that own logic has held up since a moment ahead is held up since now', async () => {
  const { claim } = await store.claimRun();
  const instance = await store.instances.find(claim.instanceId);
  const work = { claim, instance, resource: CONTACTS } as SliceWork;
  const parts = {
    ...store,
    ownLogicTimeoutMs: MINUTE_MS,
    now: () => NOW,
    ownLogic: async () => {
      throw new Error('broken');
    },
  } as unknown as SyncParts;
  const before = { own_tries: 1, own_since: NOW + 2 * DAY_MS };
  await expect(tellOwnLogic(parts, work, before, { created: [{ id: '1' }] }, context)).rejects.toMatchObject({
    tries: 2,
    since: NOW,
  });
});

test('a turn ends when the clock is set back: others wait for the place', () => {
  let now = NOW;
  const isOver = beginTurn(
    () => false,
    () => now,
  );
  expect(isOver(1)).toBe(false);
  now -= 2 * DAY_MS;
  expect(isOver(1)).toBe(true);
});
