import { beforeEach, expect, test } from 'vitest';
import type { Run, RunKey } from '../../src/store/runs.ts';
import { markDeletions } from '../../src/sync/deletions.ts';
import { retryParked } from '../../src/sync/own-logic-parking.ts';
import { writePage } from '../../src/sync/page.ts';
import { ProcessFailure } from '../../src/sync/process-failure.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore, pageOf } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const store = await openTestStore();
const log = testLogger();
const NEXT = 'https://x.example/next';
const TRIES = 5;

let key: RunKey;
let clock = NOW;
/** The ids of each batch that the own logic was called with. */
let told: unknown[][] = [];
/** Lets a call of the own logic that is under way come to its end. */
let release: (() => void)[] = [];
/** Resolves as soon as the own logic is called. */
let called = Promise.withResolvers<void>();

const parts = {
  ...store,
  // It comes to no end until it is let go.
  ownLogic: async ({ created, changed, deleted }, { signal }) => {
    told.push([...created, ...changed, ...deleted].map(({ id }) => id));
    const end = Promise.withResolvers<void>();
    release.push(end.resolve);
    signal.addEventListener('abort', () => end.reject(signal.reason));
    called.resolve();
    await end.promise;
  },
  ownLogicTimeoutMs: 60_000,
  now: () => clock,
} as Pick<SyncParts, 'ownLogic' | 'ownLogicTimeoutMs' | 'now'> as SyncParts;

/** Another worker, which has the run from now on; in a process of its own, which may end. */
async function nextWorker() {
  const run = (await store.runs.claim(key)) ?? expect.unreachable();
  const instance = await store.instances.find(key.instanceId);
  const claim = { ...key, fence: run.fence };
  const work = { claim, instance, resource: { name: 'contacts' } } as SliceWork;
  const stopping = new AbortController();
  const context = { logger: log.logger, signal: stopping.signal } as SliceContext;
  called = Promise.withResolvers();
  return {
    run,
    claim,
    stopping,
    write: (texts: string[], of: Run = run) => writePage(parts, work, of, pageOf(texts, NEXT), context),
    markDeletions: () => markDeletions(parts, work, run, () => false, context),
    retryParked: () => retryParked(parts, work, run, () => false, context),
    end: (error: unknown) => endSlice(parts, claim, run, error, context),
  };
}

/**
 * Tells a batch in one worker after the other: each of them is at it when the next one takes the run over.
 *
 * @returns waits for what becomes of them
 */
async function loseTries(begin: (worker: Awaited<ReturnType<typeof nextWorker>>) => Promise<unknown>) {
  const tellings: Promise<unknown>[] = [];
  for (let tries = 0; tries < TRIES; tries++) {
    tellings.push(begin(await nextWorker()));
    await called.promise;
  }
  return () => Promise.all(tellings);
}

const letGo = () => {
  for (const end of release.splice(0)) end();
};
const parkedNow = () => store.parked.list(key, 5);
const triesNow = async () => (await store.runs.find(key))?.own_tries;

beforeEach(async () => {
  ({ claim: key } = await store.claimRun());
  clock = NOW;
  told = [];
  release = [];
  log.lines.length = 0;
});

test('a batch whose tries have no end, one after the other, is parked without another one, and the next page goes on', async () => {
  const late = await loseTries(({ write }) => write(['{"id":"a"}']));
  expect(told).toEqual(Array(TRIES).fill(['a']));
  expect(await triesNow()).toBe(TRIES);

  const { write } = await nextWorker();
  const run = await write(['{"id":"a"}']);
  expect(told.length).toBe(TRIES);
  expect(run).toMatchObject({ pages: 1, stored: 1, own_tries: 0 });
  expect(await parkedNow()).toMatchObject([
    {
      tries: TRIES,
      first_id: 'a',
      error:
        "The app's own logic did not come to an end with a batch of contacts: the process died, or was kept from everything else for so long that another worker took the run over.",
    },
  ]);
  const next = write(['{"id":"b"}'], run);
  await expect.poll(() => told.at(-1)).toEqual(['b']);
  letGo();
  expect(await next).toMatchObject({ pages: 2, stored: 2 });
  // Those that come back late have lost the run: they say so, and change nothing.
  expect(await late()).toEqual(Array(TRIES).fill(undefined));
  const warned = log.lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
  expect(warned).toEqual([
    'the own logic does not take a batch: it is parked',
    ...Array(TRIES).fill('another worker has taken the run over while the own logic was at work'),
  ]);
  expect(await triesNow()).toBe(0);
});

test('so is one of deletions', async () => {
  const { claim, write } = await nextWorker();
  const first = write(['{"id":"a"}']);
  await called.promise;
  letGo();
  await first;
  await store.runs.fail(claim, { error: 'Anew.', keepsPlace: false, now: NOW });
  await store.runs.start(key, NOW);
  told = [];
  const late = await loseTries(({ markDeletions }) => markDeletions());
  expect(told).toEqual(Array(TRIES).fill(['a']));
  expect(await (await nextWorker()).markDeletions()).toBe('done');
  expect(told.length).toBe(TRIES);
  expect(await parkedNow()).toMatchObject([{ tries: TRIES, first_id: 'a' }]);
  expect(await store.runs.find(key)).toMatchObject({ stored: 0, deleted: 1, own_tries: 0 });
  // Those that come back late have told it without the run: what the own logic has is in doubt again.
  expect(await store.inDoubt.missing(key, 5)).toEqual([]);
  letGo();
  expect(await late()).toEqual(Array(TRIES).fill('lost'));
  expect(await store.inDoubt.missing(key, 5)).toEqual(['a']);
});

test('a try that a shutdown breaks off does not count, nor one that a pause keeps from the store; one in a process that crashes does', async () => {
  for (const [reason, tries] of [
    [undefined, 0],
    [new ProcessFailure(), 1],
    [undefined, 1],
  ] as const) {
    const { write, stopping, end } = await nextWorker();
    const telling = write(['{"id":"a"}']);
    await called.promise;
    stopping.abort(reason);
    expect(await end(await telling.catch((error) => error))).toMatchObject({ kind: 'yield' });
    expect(await triesNow()).toBe(tries);
  }
  const { write } = await nextWorker();
  const telling = write(['{"id":"a"}']);
  await called.promise;
  await store.instances.setStatus(key.instanceId, 'paused', { from: ['active'] });
  letGo();
  expect(await telling).toBeUndefined();
  expect(await triesNow()).toBe(1);
});

test('where so many batches are parked that there is no room, one whose tries have no end waits, and is not told', async () => {
  await loseTries(({ write }) => write(['{"id":"a"}']));
  const { write, run, end } = await nextWorker();
  const another = {
    list: run.list,
    seqs: '{"created":[],"changed":[],"deleted":[]}',
    count: 0,
    tries: 5,
    error: 'Not these.',
    parked_at: NOW,
    tried_at: NOW,
  };
  await store.db.insertInto('parked_batches').values(Array(1_000).fill(another)).execute();
  const error = await write(['{"id":"a"}']).catch((thrown) => thrown);
  expect(error).toMatchObject({ remedy: 'wait', message: expect.stringContaining('So many batches') });
  expect(await end(error)).toMatchObject({ kind: 'wait' });
  expect([told.length, await triesNow()]).toEqual([TRIES, TRIES]);
});

test('a try of a parked batch that has no end is the only one of its run; one that a shutdown breaks off is made again', async () => {
  await loseTries(({ write }) => write(['{"id":"a"}']));
  await (await nextWorker()).write(['{"id":"a"}']);
  await store.db
    .updateTable('parked_batches')
    .set({ tried_at: NOW - 1 })
    .execute();
  const [before] = await parkedNow();
  told = [];

  const ended = await nextWorker();
  const brokenOff = ended.retryParked();
  await called.promise;
  ended.stopping.abort();
  await expect(brokenOff).rejects.toMatchObject({ name: 'OwnLogicError' });
  expect(await parkedNow()).toEqual([before]);

  clock = NOW + 1_000;
  const lost = (await nextWorker()).retryParked();
  await called.promise;
  expect(await parkedNow()).toMatchObject([
    {
      tries: TRIES + 1,
      error:
        "The app's own logic was called with a batch of contacts at 12:00:01 UTC. If it is not at work any more, the process died, or was kept from everything else for so long that another worker took the run over.",
    },
  ]);
  expect(await (await nextWorker()).retryParked()).toBe(false);
  expect(told).toEqual([['a'], ['a']]);
  letGo();
  expect(await lost).toBe(false);
  expect(await parkedNow()).toMatchObject([{ tries: TRIES + 1 }]);

  // In the next run it has a try again; a crash uses that up.
  const { claim } = await nextWorker();
  await store.runs.fail(claim, { error: 'Anew.', keepsPlace: false, now: clock });
  clock += 1_000;
  await store.runs.start(key, clock);
  const crashed = await nextWorker();
  const crash = crashed.retryParked();
  await called.promise;
  crashed.stopping.abort(new ProcessFailure());
  await expect(crash).rejects.toMatchObject({ name: 'OwnLogicError' });
  expect(await (await nextWorker()).retryParked()).toBe(false);
  expect(await parkedNow()).toMatchObject([{ tries: TRIES + 2 }]);
  expect(told.length).toBe(3);
});
