import { expect, test } from 'vitest';
import { readFigures } from '../../src/store/figures.ts';
import { NOW, openTestStore } from './test-store.ts';

const HOUR_MS = 3_600_000;

test('figures of an empty store', async () => {
  const { db } = await openTestStore();
  expect(await readFigures(db, NOW, HOUR_MS)).toEqual({
    instances: {},
    runs: {},
    oldestStart: null,
    oldestRefreshToken: null,
    due: 0,
    overdue: 0,
  });
});

test('the oldest run is that of an active instance, and one that is over is none', async () => {
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
  const before = await readFigures(store.db, NOW, HOUR_MS);
  expect(before.instances).toEqual({ active: 2, paused: 1 });
  expect(before.runs).toEqual({ running: 1, waiting: 1 });
  expect(before.oldestStart).toBe(NOW - 8_000);

  await store.runs.finish(claim, NOW);
  const after = await readFigures(store.db, NOW, HOUR_MS);
  expect(after.runs).toEqual({ idle: 1, waiting: 1 });
  expect(after.oldestStart).toBe(NOW - 5_000);
});

test('a rotation that is due is overdue only if no refresh has gone well for long', async () => {
  const store = await openTestStore();
  const add = async (name: string, dueAt: number, refreshedAt: number, issuedAt = dueAt - HOUR_MS) => {
    await store.tokens.install(
      { id: name, company_id: name, name, installed_at: NOW },
      {
        access_token: 'sealed',
        refresh_token: 'sealed',
        access_expires_at: NOW,
        refresh_issued_at: issuedAt,
        refresh_due_at: dueAt,
        refreshed_at: refreshedAt,
      },
    );
  };
  await add('later', NOW + 1, NOW - 9 * HOUR_MS);
  await add('due', NOW - HOUR_MS / 2, NOW - 9 * HOUR_MS);
  await add('tried', NOW - 5 * HOUR_MS, NOW - HOUR_MS / 2);
  await add('overdue', NOW - 4 * HOUR_MS, NOW - 3 * HOUR_MS);
  await add('gone', NOW - 99 * HOUR_MS, NOW - 99 * HOUR_MS);
  await store.instances.setStatus('gone', 'needs_reauthorization', { from: ['active'] });
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({
    due: 3,
    overdue: 1,
    oldestRefreshToken: NOW - 6 * HOUR_MS,
  });

  // Moments that cannot be: some answer told a wrong time, and nobody knows when these are due.
  const never = NOW + 9_000 * HOUR_MS;
  await add('a little ahead', never, NOW + HOUR_MS / 2, NOW + HOUR_MS / 2);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 3, overdue: 1 });
  await add('issued in the future', never, NOW - HOUR_MS / 2, never - HOUR_MS);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 4, overdue: 1 });
  await add('and not refreshed for long', never, NOW - 3 * HOUR_MS, never - HOUR_MS);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 5, overdue: 2 });
  await add('refreshed in the future', never, never - HOUR_MS, NOW - 9 * HOUR_MS);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 6, overdue: 3 });

  // Since a while ago nobody knows when these are due: they are tried at growing distances.
  await add('tried, and not yet again', NOW - 12 * HOUR_MS, NOW - 5 * HOUR_MS, NOW - 12 * HOUR_MS);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 7, overdue: 3 });
  await add('tried too long ago', NOW - 12 * HOUR_MS, NOW - 7 * HOUR_MS, NOW - 12 * HOUR_MS);
  expect(await readFigures(store.db, NOW, HOUR_MS)).toMatchObject({ due: 8, overdue: 4 });
});
