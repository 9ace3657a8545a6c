import { expect, test } from 'vitest';
import type { RunKey } from '../../src/store/runs.ts';
import { NOW, openTestStore } from './test-store.ts';

const store = await openTestStore();
const { runs, instances } = store;

async function newKey(): Promise<RunKey> {
  return { instanceId: await store.addInstance(), resource: 'contacts' };
}

async function read(key: RunKey) {
  const run = await runs.find(key);
  if (run === undefined) throw new Error('no run');
  return run;
}

test('a first start waits for its turn', async () => {
  const key = await newKey();
  expect(await runs.find(key)).toBeUndefined();
  expect(await runs.start(key, NOW)).toBe(true);
  expect(await read(key)).toMatchObject({
    state: 'waiting',
    waiting_for: 'turn',
    phase: 'pages',
    cursor: null,
    pages: 0,
    started_at: NOW,
    finished_at: null,
  });
});

test('what is under way is not started again, whether it waits or runs', async () => {
  const key = await newKey();
  await runs.start(key, NOW);
  expect(await runs.start(key, NOW + 1)).toBe(false);
  await runs.claim(key);
  expect(await runs.start(key, NOW + 2)).toBe(false);
  expect(await read(key)).toMatchObject({ started_at: NOW });
});

test('every claim raises the fence, and only the newest holder may write', async () => {
  const { claim } = await store.claimRun();
  const second = await runs.claim(claim);
  expect(second?.fence).toBe(claim.fence + 1);

  const before = await read(claim);
  expect(await store.write(claim, ['{"id":"1"}'])).toBeUndefined();
  expect(await store.deletions.mark(claim, [1], NOW)).toBe(false);
  expect(await runs.wait(claim, { for: 'limit', until: NOW })).toBe(false);
  expect(await runs.fail(claim, { error: 'late', keepsPlace: true, now: NOW })).toBe(false);
  expect(await runs.finish(claim, NOW)).toBe(false);
  expect(await read(claim)).toEqual(before);
  expect(await store.count(claim.instanceId, claim.resource)).toBe(0);

  expect(await store.write({ ...claim, fence: claim.fence + 1 }, ['{"id":"1"}'])).toMatchObject({ pages: 1 });
});

test('two that claim at the same time get different fences', async () => {
  const key = await newKey();
  await runs.start(key, NOW);
  const claims = await Promise.all(Array.from({ length: 5 }, () => runs.claim(key)));
  expect(claims.map((run) => run?.fence).toSorted()).toEqual([1, 2, 3, 4, 5]);
});

test.each(['paused', 'needs_reauthorization', 'disconnected'] as const)(
  'a run of an instance that is %s cannot be claimed, nor has it to have a job',
  async (status) => {
    const key = await newKey();
    await runs.start(key, NOW);
    await instances.setStatus(key.instanceId, status, { from: ['active'] });
    expect(await runs.claim(key)).toBeUndefined();
    expect(await runs.unfinished()).not.toContainEqual(key);
    await instances.setStatus(key.instanceId, 'active', { from: [status] });
    expect(await runs.unfinished()).toContainEqual(key);
    expect((await runs.claim(key))?.fence).toBe(1);
  },
);

test('what is idle or failed cannot be claimed', async () => {
  const { claim } = await store.claimRun();
  await runs.finish(claim, NOW);
  expect(await runs.claim(claim)).toBeUndefined();
  const failed = await store.claimRun();
  await runs.fail(failed.claim, { error: 'broken', keepsPlace: true, now: NOW });
  expect(await runs.claim(failed.claim)).toBeUndefined();
  expect(await runs.claim({ instanceId: 'ins_unknown', resource: 'contacts' })).toBeUndefined();
});

test('a wait says for what and until when; a claim ends it', async () => {
  const { claim } = await store.claimRun();
  await runs.wait(claim, { for: 'retry', until: NOW + 500, attempt: 3, error: 'no answer' });
  expect(await read(claim)).toMatchObject({
    state: 'waiting',
    waiting_for: 'retry',
    waiting_until: NOW + 500,
    attempt: 3,
    error: 'no answer',
  });
  await runs.wait(claim, { for: 'limit', until: NOW + 900 });
  expect(await read(claim)).toMatchObject({ waiting_for: 'limit', attempt: 3, error: 'no answer' });
  await runs.claim(claim);
  expect(await read(claim)).toMatchObject({
    state: 'running',
    waiting_for: null,
    waiting_until: null,
    attempt: 3,
  });
});

test('a failed run that kept its place goes on there', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await runs.fail(claim, { error: 'tried long enough', keepsPlace: true, now: NOW + 1 });
  expect(await read(claim)).toMatchObject({
    state: 'failed',
    error: 'tried long enough',
    finished_at: NOW + 1,
  });

  expect(await runs.start(claim, NOW + 5)).toBe(true);
  expect(await read(claim)).toMatchObject({
    state: 'waiting',
    cursor: 'https://x.example/p2',
    pages: 1,
    attempt: 0,
    error: null,
    finished_at: null,
    started_at: NOW,
  });
});

test('a failed run that lost its place begins at the first page', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await runs.fail(claim, { error: 'refused', keepsPlace: false, now: NOW + 1 });
  expect(await runs.start(claim, NOW + 5)).toBe(true);
  expect(await read(claim)).toMatchObject({
    cursor: null,
    pages: 0,
    records: 0,
    started_at: NOW + 5,
  });
});

test('a run that failed while it marked deletions goes on with them', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}']);
  await runs.fail(claim, { error: 'own logic', keepsPlace: true, now: NOW + 1 });
  await runs.start(claim, NOW + 5);
  expect(await read(claim)).toMatchObject({ phase: 'deletions', pages: 1 });
});

test('a finished run is started anew; fences go on', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}']);
  expect(await runs.finish(claim, NOW + 1)).toBe(true);
  expect(await read(claim)).toMatchObject({
    state: 'idle',
    phase: 'pages',
    cursor: null,
    finished_at: NOW + 1,
    pages: 1,
  });
  await runs.start(claim, NOW + 5);
  expect(await read(claim)).toMatchObject({ fence: claim.fence, pages: 0, finished_at: null });
});

test('what is due: never ran, finished or failed long enough ago', async () => {
  const fresh = await newKey();
  const waiting = await newKey();
  await runs.start(waiting, NOW);
  const finished = await store.claimRun();
  await runs.finish(finished.claim, NOW);
  const failed = await store.claimRun();
  await runs.fail(failed.claim, { error: 'x', keepsPlace: true, now: NOW });
  const paused = await newKey();
  await instances.setStatus(paused.instanceId, 'paused', { from: ['active'] });

  const mine = [fresh, waiting, finished.claim, failed.claim, paused].map(({ instanceId }) => instanceId);
  const due = async (finishedBefore: number, failedBefore: number, resource = 'contacts') =>
    (await runs.due(resource, finishedBefore, failedBefore))
      .map(({ instanceId }) => instanceId)
      .filter((id) => mine.includes(id));
  expect(await due(NOW - 1, NOW - 1)).toEqual([fresh.instanceId]);
  expect(await due(NOW, NOW - 1)).toEqual([fresh.instanceId, finished.claim.instanceId]);
  expect(await due(NOW - 1, NOW)).toEqual([fresh.instanceId, failed.claim.instanceId]);
  expect((await due(0, 0, 'teammates')).length).toBe(4);
});

test('a disconnected instance’s runs are over: nobody may commit, and the next one begins anew', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await store.tokens.disconnect(claim.instanceId);
  expect(await store.write(claim, ['{"id":"2"}'])).toBeUndefined();
  expect(await read(claim)).toMatchObject({ state: 'idle', cursor: null, pages: 0 });
  expect(await runs.start(claim, NOW + 5)).toBe(true);
  expect(await read(claim)).toMatchObject({ cursor: null });
});

test('a claim from before a disconnect is worth nothing after the next install, whoever has its run by then', async () => {
  const { claim } = await store.claimRun();
  await store.tokens.disconnect(claim.instanceId);
  const expectWorthless = async () => {
    expect(await runs.holds(claim)).toBe(false);
    expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
    expect(await runs.wait(claim, { for: 'limit', until: NOW })).toBe(false);
    expect(await runs.finish(claim, NOW)).toBe(false);
  };
  await store.addInstance(claim.instanceId);
  await expectWorthless();
  await runs.start(claim, NOW + 5);
  await expectWorthless();
  const { fence } = (await runs.claim(claim)) ?? expect.unreachable();
  await expectWorthless();
  expect(await read(claim)).toMatchObject({ state: 'running', pages: 0, stored: 0 });
  expect(await store.write({ ...claim, fence }, ['{"id":"1"}'])).toMatchObject({ stored: 1 });
});

test('runs are found by instance', async () => {
  const { claim } = await store.claimRun();
  await runs.start({ ...claim, resource: 'conversations' }, NOW);
  expect((await runs.list(claim.instanceId)).map(({ resource }) => resource).toSorted()).toEqual([
    'contacts',
    'conversations',
  ]);
});

test.each([
  ['failed', 'anew'],
  ['waiting for a further try', 'anew'],
  ['being worked on', 'where it is'],
] as const)('a stuck run that is %s goes on %s when somebody wants it to begin', async (state, how) => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await runs.fail(claim, { error: 'no page', keepsPlace: true, stuckSince: NOW, now: NOW });
  if (state !== 'failed') {
    await runs.start(claim, NOW + 1);
    const { fence } = (await runs.claim(claim)) ?? expect.unreachable();
    if (state !== 'being worked on') await runs.wait({ ...claim, fence }, { for: 'retry', until: NOW });
  }
  expect(await runs.start(claim, NOW + 5, { leavesStuck: true })).toBe(how === 'anew');
  expect(await read(claim)).toMatchObject(
    how === 'anew'
      ? { state: 'waiting', cursor: null, pages: 0, stored: 1, stuck_since: null, started_at: NOW + 5 }
      : { state: 'running', cursor: 'https://x.example/p2', pages: 1, stuck_since: NOW },
  );
  expect(await store.deletions.seenCount(claim)).toBe(how === 'anew' ? 0 : 1);
});

test('a run that is not stuck keeps its place whoever starts it', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await runs.wait(claim, { for: 'retry', until: NOW });
  expect(await runs.start(claim, NOW + 5, { leavesStuck: true })).toBe(false);
  await runs.fail(claim, { error: 'Redis', keepsPlace: true, now: NOW });
  expect(await runs.start(claim, NOW + 5, { leavesStuck: true })).toBe(true);
  expect(await read(claim)).toMatchObject({ cursor: 'https://x.example/p2', pages: 1 });
});
