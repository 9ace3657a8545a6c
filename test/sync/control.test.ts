import { Redis } from 'ioredis';
import { afterAll, describe, expect, test } from 'vitest';
import { RateBudget } from '../../src/service/budget.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import type { Lagging } from '../../src/store/changes.ts';
import type { ListJob } from '../../src/store/runs.ts';
import { SyncControl } from '../../src/sync/control.ts';
import { StatusReader } from '../../src/sync/status.ts';
import { DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from '../store/test-store.ts';
import { startTestRedis } from '../support/test-redis.ts';

const MINUTE_MS = 60_000;
const RESOURCES = ['contacts', 'conversations'].map((name) => ({ name, title: name, route: `/${name}` }));
const at = (ms: number) => new Date(NOW + ms).toISOString();

const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, runs } = store;
  const jobs: ListJob[] = [];
  const deliveries: Lagging[] = [];
  const watch = { areWorkersMissing: false, failing: undefined };
  const shared = { ...store, resources: RESOURCES, intervalMs: 60 * MINUTE_MS, checkIntervalMs: MINUTE_MS };
  const clock = new ServiceClock();
  const parts = { ...shared, budget: new RateBudget(redis), clock, watch };
  const reader = new StatusReader({ ...parts, hasHandler: true });
  const control = new SyncControl({
    ...shared,
    enqueueLists: async (started) => void jobs.push(...started),
    enqueueDeliveries: async (lists) => void deliveries.push(...lists),
    now: () => NOW,
  });
  const started = () =>
    jobs
      .splice(0)
      .map(({ resource }) => resource)
      .toSorted();
  const statusOf = async ({ instanceId }: { instanceId: string }) => {
    const status = (await reader.read(instanceId)) ?? expect.unreachable();
    return { ...status, contacts: status.resources.contacts ?? expect.unreachable() };
  };
  async function deliverAll({ instanceId, resource, list }: TestClaim) {
    const held = await store.hold({ instanceId, resource });
    const entries = await changes.read(list, held.cursor);
    await changes.deliver(held, entries, NOW);
    return entries.map(({ id }) => id);
  }

  test('a sync starts all lists, or one, of an active instance', async () => {
    const instanceId = await store.addInstance();
    expect(await control.syncNow(instanceId, 'contacts')).toBe(true);
    expect(await control.syncNow(instanceId)).toBe(true);
    expect(started()).toEqual(['contacts', 'contacts', 'conversations']);
    expect(await control.pause(instanceId)).toBe(true);
    expect([await control.pause(instanceId), await control.syncNow(instanceId)]).toEqual([false, false]);
    expect((await statusOf({ instanceId })).status).toBe('paused');
    expect(await control.resume(instanceId)).toBe(true);
    expect(started()).toEqual(['contacts', 'conversations']);
    expect(await control.resume(instanceId)).toBe(false);
  });

  test('one list pauses, and its run and deliveries continue when it resumes', async () => {
    const claim = await store.claimRun();
    const { instanceId, list } = claim;
    expect(await control.pause(instanceId, 'contacts')).toBe(true);
    expect(await statusOf(claim)).toMatchObject({ status: 'active', contacts: { paused: true } });
    expect(await control.syncNow(instanceId, 'contacts')).toBe(false);
    expect(await control.syncNow(instanceId)).toBe(true);
    expect(started()).toEqual(['conversations']);
    await control.pause(instanceId);
    await control.resume(instanceId);
    expect(started()).toEqual(['conversations']);
    deliveries.length = 0;
    expect(await control.resume(instanceId, 'contacts')).toBe(true);
    expect(jobs.splice(0)).toMatchObject([{ instanceId, resource: 'contacts', list }]);
    expect(deliveries).toMatchObject([{ instanceId, resource: 'contacts' }]);
    expect((await statusOf(claim)).contacts.paused).toBe(false);
    expect(await control.pause(instanceId, 'tags')).toBe(false);
  });

  test('a run that waits for a retry gets its job back with the resume', async () => {
    const claim = await store.claimRun();
    const until = NOW + MINUTE_MS;
    await runs.wait(claim, { for: 'retry', until, requests: 1, refused: 0 });
    await control.pause(claim.instanceId);
    await control.resume(claim.instanceId);
    expect(jobs.splice(0)).toMatchObject([{ resource: 'contacts', list: claim.list, until }]);
  });

  test('a list has its own interval, and the instance shows the next start', async () => {
    const claim = await store.copy([]);
    const { instanceId } = claim;
    await store.copy([], { instanceId, resource: 'conversations' });
    const next = (minutes: number) => at(minutes * MINUTE_MS);
    expect(await control.setInterval(instanceId, 'contacts', 5)).toBe(true);
    expect(await statusOf(claim)).toMatchObject({
      next_sync_at: next(5),
      resources: {
        contacts: { interval_minutes: 5, next_sync_at: next(5) },
        conversations: { interval_minutes: 60, next_sync_at: next(60) },
      },
    });
    await control.pause(instanceId, 'contacts');
    expect(await statusOf(claim)).toMatchObject({ next_sync_at: next(60), contacts: { next_sync_at: null } });
    expect(await control.setInterval(instanceId, 'contacts', null)).toBe(true);
    expect((await statusOf(claim)).contacts.interval_minutes).toBe(60);
    expect(await control.setInterval(instanceId, 'tags', 5)).toBe(false);
    await control.pause(instanceId);
    expect((await statusOf(claim)).next_sync_at).toBeNull();
  });

  test('the handler gets an erased record as deleted', async () => {
    const claim = await store.copy(documentsOf(2));
    await deliverAll(claim);
    deliveries.length = 0;
    expect(await control.erase(claim.instanceId, 'contacts', '1')).toBe(true);
    expect(deliveries).toMatchObject([{ instanceId: claim.instanceId, resource: 'contacts' }]);
    expect(await deliverAll(claim)).toEqual(['1']);
    expect(await control.erase(claim.instanceId, 'contacts', '1')).toBe(false);
    expect(await control.erase(claim.instanceId, 'tags', '0')).toBe(false);
    expect((await statusOf(claim)).contacts.stored).toBe(1);
  });

  test('the last runs of each list have their counts and their errors', async () => {
    const claim = await store.claimRun();
    await store.write(claim, ['{"id":"a"}', '{"no":"id"}']);
    await store.finish(claim, { now: NOW + 5, missing: 8, held: 7 });
    const failed = await store.claimRun(claim);
    await runs.fail(failed, { kind: 'refused', detail: 'Refused (404).' }, NOW + 9, NOW + 10);
    const none = { kind: 'full', records: 0, created: 0, changed: 0, deleted: 0, rejected: 0, refused: 0 };
    expect(await reader.readRuns(claim.instanceId)).toEqual({
      contacts: [
        {
          ...none,
          ...{ id: failed.run, state: 'failed', started_at: at(0), finished_at: at(9) },
          ...{ pages: 0, requests: 0, missing: 0, held: 0, error_kind: 'refused', error: 'Refused (404).' },
        },
        {
          ...none,
          ...{ id: claim.run, state: 'finished', started_at: at(0), finished_at: at(5) },
          ...{ pages: 1, records: 1, created: 1, rejected: 1, requests: 1, missing: 8, held: 7 },
          ...{ error_kind: null, error: null },
        },
      ],
      conversations: [],
    });
  });

  test.each(['fails', 'is silent'])('the status is read while Redis %s', async (how) => {
    const read = () => (how === 'fails' ? Promise.reject(new Error('away')) : new Promise<never>(() => {}));
    const budget = Object.assign(new RateBudget(redis), { read });
    const { instanceId } = await store.claimRun();
    expect(await new StatusReader({ ...parts, budget, hasHandler: true }).read(instanceId)).toMatchObject({
      budget: { limit: null, remaining: null, reset_at: null, burst_remaining: null, blocked_until: null },
      resources: { contacts: { state: 'running' } },
    });
  });

  test('the status shows each list, even before its first run', async () => {
    const claim = await store.claimRun();
    expect((await statusOf(claim)).resources).toMatchObject({
      contacts: { state: 'running', started_at: at(0), handler: { pending: 0 } },
      conversations: { state: 'idle', pages: 0, started_at: null, handler: { pending: 0 } },
    });
    watch.areWorkersMissing = true;
    expect(await statusOf(claim)).toMatchObject({
      workers_missing: true,
      contacts: { state: 'waiting', waiting_for: 'turn' },
    });
    watch.areWorkersMissing = false;
    await store.write(claim, ['{"id":"a"}', '{"no":"id"}']);
    await store.finish(claim, { now: NOW + 5, missing: 2, held: 2 });
    expect(await statusOf(claim)).toMatchObject({
      next_sync_at: at(5 + 60 * MINUTE_MS),
      contacts: { ...{ state: 'idle', pages: 1, records: 1, stored: 1, rejected: 1 }, finished_at: at(5) },
    });
    expect(await reader.readProblems(claim.instanceId)).toMatchObject({
      contacts: { rejected: 1, rejected_records: [{ reason: 'It has no id.', excerpt: '{"no":"id"}' }] },
    });
    const next = await store.claimRun(claim);
    // A run that is under way does not hide what the one before holds.
    expect((await statusOf(claim)).contacts.held_deletions).toBe(2);
    await runs.fail(next, { kind: 'refused', detail: 'Refused (404).' }, NOW + 6, NOW + 7);
    const failed = { state: 'failed', error_kind: 'refused', error: 'Refused (404).' };
    expect((await statusOf(claim)).contacts).toMatchObject(failed);
    expect(await reader.read('ins_nobody')).toBeUndefined();
  });
});
