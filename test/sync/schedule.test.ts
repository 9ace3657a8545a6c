import { expect, test } from 'vitest';
import { nextStartAt, startDueRuns } from '../../src/sync/schedule.ts';
import { NOW, openTestStore } from '../store/test-store.ts';

const MINUTE_MS = 60_000;
const INTERVAL_MS = 60 * MINUTE_MS;
const CONTACTS = { name: 'contacts', title: 'Contacts', route: '/contacts' };
const CONVERSATIONS = { name: 'conversations', title: 'Conversations', route: '/conversations' };
const TEAMMATES = { name: 'teammates', title: 'Teammates', route: '/teammates' };

async function start() {
  const store = await openTestStore();
  let now = NOW;
  const due = (resources = [CONTACTS, CONVERSATIONS]) =>
    startDueRuns({ runs: store.runs, resources, intervalMs: INTERVAL_MS, now: () => now });
  const state = async (instanceId: string, resource: string) =>
    (await store.runs.find({ instanceId, resource }))?.state;
  return { ...store, due, state, setNow: (to: number) => (now = to) };
}

const keys = (instanceId: string, ...resources: string[]) =>
  resources.map((resource) => ({ instanceId, resource }));

test('a finished run comes round after the interval, a failed one after ten minutes at the latest', () => {
  expect(nextStartAt({ failed: false, finishedAt: NOW }, INTERVAL_MS)).toBe(NOW + INTERVAL_MS);
  expect(nextStartAt({ failed: true, finishedAt: NOW }, INTERVAL_MS)).toBe(NOW + 10 * MINUTE_MS);
  expect(nextStartAt({ failed: true, finishedAt: NOW }, 3 * MINUTE_MS)).toBe(NOW + 3 * MINUTE_MS);
});

test('what was never synced is started, of every active instance', async () => {
  const { addInstance, instances, due, state } = await start();
  const [one, two, paused] = [await addInstance(), await addInstance(), await addInstance()];
  await instances.setStatus(paused, 'paused', { from: ['active'] });
  const wanted = [...keys(one, 'contacts', 'conversations'), ...keys(two, 'contacts', 'conversations')];
  const started = await due();
  expect(started).toEqual(expect.arrayContaining(wanted));
  expect(started.length).toBe(4);
  expect(await state(paused, 'contacts')).toBeUndefined();
});

test('what is under way is not started again, but must have a job', async () => {
  const { claimRun, runs, due } = await start();
  const { claim } = await claimRun();
  const before = await runs.find(claim);
  expect(await due()).toContainEqual(keys(claim.instanceId, 'contacts')[0]);
  expect(await runs.find(claim)).toEqual(before);
});

test('finished and failed ones are started when their time has come, not before', async () => {
  const { claimRun, runs, due, state, setNow } = await start();
  const finished = await claimRun();
  await runs.finish(finished.claim, NOW);
  const failed = await claimRun();
  await runs.fail(failed.claim, { error: 'x', keepsPlace: true, now: NOW });
  const states = async () => [
    await state(finished.claim.instanceId, 'contacts'),
    await state(failed.claim.instanceId, 'contacts'),
  ];

  setNow(NOW + 10 * MINUTE_MS - 1);
  await due();
  expect(await states()).toEqual(['idle', 'failed']);
  setNow(NOW + 10 * MINUTE_MS);
  await due();
  expect(await states()).toEqual(['idle', 'waiting']);
  setNow(NOW + INTERVAL_MS - 1);
  await due();
  expect(await states()).toEqual(['idle', 'waiting']);
  setNow(NOW + INTERVAL_MS);
  expect(await due()).toContainEqual(keys(finished.claim.instanceId, 'contacts')[0]);
  expect(await states()).toEqual(['waiting', 'waiting']);
});

test('a resource that is new in the registry is started for instances that were installed before', async () => {
  const { addInstance, runs, due, state } = await start();
  const id = await addInstance();
  await due();
  for (const key of keys(id, 'contacts', 'conversations')) {
    const run = await runs.claim(key);
    await runs.finish({ ...key, fence: run?.fence ?? 0 }, NOW);
  }
  expect(await due()).toEqual([]);
  expect(await due([CONTACTS, CONVERSATIONS, TEAMMATES])).toEqual(keys(id, 'teammates'));
  expect(await state(id, 'contacts')).toBe('idle');
  expect(await runs.find({ instanceId: id, resource: 'teammates' })).toMatchObject({
    started_at: NOW,
  });
});

test('an instance that comes back after a disconnect begins anew', async () => {
  const { claimRun, write, runs, tokens, instances, due } = await start();
  const { claim } = await claimRun();
  await write(claim, ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await tokens.disconnect(claim.instanceId);
  expect(await due()).toEqual([]);
  await instances.setStatus(claim.instanceId, 'active', { from: ['disconnected'] });
  expect((await due()).length).toBe(2);
  expect(await runs.find(claim)).toMatchObject({ state: 'waiting', cursor: null });
});
