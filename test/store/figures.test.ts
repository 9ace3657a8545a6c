import { expect, test } from 'vitest';
import { readFigures } from '../../src/store/figures.ts';
import { installInstance } from '../support/install-instance.ts';
import { NOW, openTestStore } from './test-store.ts';

const HOUR_MS = 3_600_000;
const RESOURCES = ['contacts', 'conversations'];

test('figures of an empty store', async () => {
  const { db } = await openTestStore();
  expect(await readFigures(db, NOW, HOUR_MS, RESOURCES)).toEqual({
    instances: {},
    runs: {},
    behindSince: null,
    oldestRefreshToken: null,
    due: 0,
    overdue: 0,
  });
});

test('the list that is behind the longest is that of an active instance, and one that is complete is not behind', async () => {
  const store = await openTestStore();
  const [paused, active, other] = [
    await store.addInstance(),
    await store.addInstance(),
    await store.addInstance(),
  ];
  await store.runs.start({ instanceId: paused, resource: 'contacts' }, NOW - 9_000);
  await store.instances.setStatus(paused, 'paused', { from: ['active'] });
  const { claim } = await (async () => {
    const key = { instanceId: active, resource: 'contacts' };
    await store.runs.start(key, NOW - 8_000);
    return { claim: { ...key, fence: (await store.runs.claim(key))?.fence ?? 0 } };
  })();
  await store.runs.start({ instanceId: other, resource: 'contacts' }, NOW - 5_000);
  const before = await readFigures(store.db, NOW, HOUR_MS, RESOURCES);
  expect(before.instances).toEqual({ active: 2, paused: 1 });
  expect(before.runs).toEqual({ running: 1, waiting: 1 });
  expect(before.behindSince).toBe(NOW - 8_000);

  await store.runs.finish(claim, NOW);
  const after = await readFigures(store.db, NOW, HOUR_MS, RESOURCES);
  expect(after.runs).toEqual({ idle: 1, waiting: 1 });
  expect(after.behindSince).toBe(NOW - 5_000);
});

test('a list whose runs fail is behind since its first start, until one comes to its end', async () => {
  const store = await openTestStore();
  const key = { instanceId: await store.addInstance(), resource: 'contacts' };
  const since = async () => (await readFigures(store.db, NOW, HOUR_MS, RESOURCES)).behindSince;
  const claim = async () => ({ ...key, fence: (await store.runs.claim(key))?.fence ?? 0 });
  const fail = async (keepsPlace: boolean, now: number) =>
    store.runs.fail(await claim(), { error: 'refused', keepsPlace, now });

  await store.runs.start(key, NOW + 1);
  await fail(false, NOW + 2);
  expect(await since()).toBe(NOW + 1);
  // Anew, at the first page.
  await store.runs.start(key, NOW + 3);
  expect(await store.runs.find(key)).toMatchObject({ started_at: NOW + 3 });
  expect(await since()).toBe(NOW + 1);
  // Where it stopped.
  await store.write(await claim(), ['{"id":"1"}'], { next: 'https://x.example/p2' });
  await fail(true, NOW + 4);
  await store.runs.start(key, NOW + 5);
  expect(await since()).toBe(NOW + 1);

  await store.runs.finish(await claim(), NOW + 6);
  expect(await since()).toBeNull();
  await store.runs.start(key, NOW + 9);
  await fail(false, NOW + 10);
  expect(await since()).toBe(NOW + 9);
});

test('a list is not behind since before it could be copied again, nor if nobody copies it any more', async () => {
  const store = await openTestStore();
  const behind = async (resource: string) => {
    const instanceId = await store.addInstance();
    await store.runs.start({ instanceId, resource }, NOW - 9_000);
    return instanceId;
  };
  const since = async () => (await readFigures(store.db, NOW, HOUR_MS, RESOURCES)).behindSince;
  await behind('of another version');
  expect(await since()).toBeNull();

  const resumed = await behind('contacts');
  await store.runs.countAnew(resumed, NOW - 50);
  expect(await since()).toBe(NOW - 50);

  const authorized = await behind('conversations');
  expect(await since()).toBe(NOW - 9_000);
  await store.instances.setStatus(authorized, 'needs_reauthorization', { from: ['active'] });
  await installInstance(store.db, { id: authorized, company_id: null }, NOW - 40);
  expect(await since()).toBe(NOW - 50);
  expect(await store.runs.find({ instanceId: authorized, resource: 'conversations' })).toMatchObject({
    behind_since: NOW - 40,
  });
});

test('a rotation that is due is overdue only if no refresh has gone well for long', async () => {
  const store = await openTestStore();
  const add = async (name: string, dueAt: number, refreshedAt: number, issuedAt = dueAt - HOUR_MS) => {
    await installInstance(store.db, { id: name }, NOW, {
      refresh_issued_at: issuedAt,
      refresh_due_at: dueAt,
      refreshed_at: refreshedAt,
    });
  };
  await add('later', NOW + 1, NOW - 9 * HOUR_MS);
  await add('due', NOW - HOUR_MS / 2, NOW - 9 * HOUR_MS);
  await add('tried', NOW - 5 * HOUR_MS, NOW - HOUR_MS / 2);
  await add('overdue', NOW - 4 * HOUR_MS, NOW - 3 * HOUR_MS);
  await add('gone', NOW - 99 * HOUR_MS, NOW - 99 * HOUR_MS);
  // Its token ends all the same.
  await store.instances.setStatus('overdue', 'paused', { from: ['active'] });
  await store.instances.setStatus('gone', 'needs_reauthorization', { from: ['active'] });
  expect(await readFigures(store.db, NOW, HOUR_MS, RESOURCES)).toMatchObject({
    due: 3,
    overdue: 1,
    oldestRefreshToken: NOW - 6 * HOUR_MS,
  });
});
