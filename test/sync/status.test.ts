import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { RateBudget } from '../../src/client/budget/rate-budget.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { RESOURCES } from '../../src/sync/resources.ts';
import { StatusReader } from '../../src/sync/status.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { startTestRedis } from '../support/test-redis.ts';

/** As the interfaces name them; more is allowed, less is not. */
const FIELDS = {
  instance: ['id', 'name', 'company_id', 'status', 'token', 'budget', 'resources'],
  token: ['access_expires_at', 'refresh_expires_at', 'refresh_due_at', 'rotations'],
  budget: ['limit', 'remaining', 'reset_at', 'burst_remaining', 'blocked_until'],
  resource: ['state', 'pages', 'records', 'deleted', 'started_at', 'finished_at', 'error'],
};

const INTERVAL_MS = 60 * 60_000;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const store = await openTestStore();
const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());
const budget = new RateBudget(redis);
const parts = {
  ...store,
  budget,
  clock: new ServiceClock(() => NOW),
  resources: RESOURCES,
  intervalMs: INTERVAL_MS,
};
const reader = new StatusReader(parts);

async function read(id: string) {
  const status = await reader.read(id);
  if (status === undefined) throw new Error('no status');
  return status;
}

async function expectFields(id: string) {
  const status = JSON.parse(JSON.stringify(await read(id)));
  expect(Object.keys(status)).toEqual(expect.arrayContaining(FIELDS.instance));
  expect(Object.keys(status.token)).toEqual(expect.arrayContaining(FIELDS.token));
  expect(Object.keys(status.budget)).toEqual(expect.arrayContaining(FIELDS.budget));
  expect(Object.keys(status.resources)).toEqual(['contacts', 'conversations']);
  for (const resource of Object.values(status.resources)) {
    expect(Object.keys(resource as object)).toEqual(expect.arrayContaining(FIELDS.resource));
  }
}

test('every field is there as JSON from the first moment on, null where nothing is known', async () => {
  const id = await store.addInstance();
  await expectFields(id);
  const status = await read(id);
  expect(status).toMatchObject({ id, status: 'active', notice: null, next_sync_at: null });
  expect(status.budget).toEqual({
    limit: null,
    remaining: null,
    reset_at: null,
    burst_remaining: null,
    blocked_until: null,
  });
  expect(status.resources.contacts).toMatchObject({ state: 'idle', pages: 0, started_at: null, error: null });
});

test('and without tokens, after a disconnect', async () => {
  const id = await store.addInstance();
  await store.tokens.disconnect(id);
  await expectFields(id);
  expect((await read(id)).token).toMatchObject({
    access_expires_at: null,
    refresh_expires_at: null,
    rotations: 0,
  });
});

test('the token’s life is told in dates: the end is six months after the issue', async () => {
  const { token } = await read(await store.addInstance());
  expect(token).toMatchObject({
    access_expires_at: '2026-03-01T12:00:00.000Z',
    refresh_expires_at: '2026-09-01T12:00:00.000Z',
    refresh_due_at: '2026-03-01T12:00:00.000Z',
  });
});

test('the progress of a resource, and what is in the copy', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}', '{"id":"2"}', '{"id":"3"}'], { next: 'https://x.example/p2' });
  await store.runs.wait(claim, { for: 'limit', until: NOW + 30_000 });
  expect((await read(claim.instanceId)).resources.contacts).toMatchObject({
    state: 'waiting',
    waiting_for: 'limit',
    waiting_until: new Date(NOW + 30_000).toISOString(),
    pages: 1,
    records: 3,
    stored: 3,
    started_at: new Date(NOW).toISOString(),
    finished_at: null,
  });
  expect(JSON.stringify(await read(claim.instanceId))).not.toContain('x.example');

  await store.remove(claim, ['3'], NOW);
  await store.runs.finish(claim, NOW + 1_000);
  const after = await read(claim.instanceId);
  expect(after.resources.contacts).toMatchObject({ state: 'idle', deleted: 1, stored: 2 });
  expect(after.next_sync_at).toBe(new Date(NOW + 1_000 + INTERVAL_MS).toISOString());
});

test('a failure says what went wrong, and the next try comes sooner', async () => {
  const { claim } = await store.claimRun();
  await store.runs.fail(claim, { error: 'The service has trouble (500).', keepsPlace: true, now: NOW });
  const status = await read(claim.instanceId);
  expect(status.resources.contacts).toMatchObject({
    state: 'failed',
    error: 'The service has trouble (500).',
  });
  expect(status.next_sync_at).toBe(new Date(NOW + 10 * 60_000).toISOString());
});

test.each([
  [
    'Reached the max retries per request limit (which is 2). Refer to "maxRetriesPerRequest" option for details.',
    'Redis could not be reached.',
  ],
  ['Command timed out', 'Redis could not be reached.'],
  ['Connection is closed.', 'Redis could not be reached.'],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'Redis could not be reached.'],
  ['OOM command not allowed when used memory > maxmemory.', 'Redis takes no writes.'],
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL.', 'Redis could not be reached.'],
  [
    "ERR The user executing the script can't run this command script: 7c63, on @user_script:78.",
    'Redis forbids what the app needs.',
  ],
  ['no such table: runs', 'no such table: runs'],
])('trouble of our own is told in plain words: %s', async (reason, told) => {
  const { claim } = await store.claimRun();
  const error = (text: string) => `The app itself had trouble: ${text}`;
  const shown = async () => (await read(claim.instanceId)).resources.contacts?.error;
  await store.runs.wait(claim, { for: 'retry', until: NOW, error: error(reason) });
  expect(await shown()).toBe(error(told));
  const tried = ' Tried 7 times; it will be tried again by itself.';
  await store.runs.fail(claim, { error: error(reason) + tried, keepsPlace: true, now: NOW });
  expect(await shown()).toBe(error(told) + tried);
});

test('what the service said about connections stays as it is', async () => {
  const { claim } = await store.claimRun();
  const error = 'The service has trouble (503: Connection is closed).';
  await store.runs.wait(claim, { for: 'retry', until: NOW, error });
  expect((await read(claim.instanceId)).resources.contacts?.error).toBe(error);
});

test('a run that says that it is under way waits when no worker runs', async () => {
  const { claim } = await store.claimRun();
  const workers = { areMissing: true };
  const without = new StatusReader({ ...parts, workers });
  expect(await without.read(claim.instanceId)).toMatchObject({
    workers_missing: true,
    resources: { contacts: { state: 'waiting', waiting_for: 'turn' } },
  });
  workers.areMissing = false;
  expect(await without.read(claim.instanceId)).toMatchObject({
    workers_missing: false,
    resources: { contacts: { state: 'running', waiting_for: null } },
  });
});

test('the budget of the company', async () => {
  const id = await store.addInstance();
  const { company_id } = await read(id);
  const rate = { limit: 120, remaining: 77, resetMs: NOW, endsInMs: 30_000, burstRemaining: 60 };
  await budget.observe(company_id ?? '', rate);
  const known = (await read(id)).budget;
  expect(known).toMatchObject({ limit: 120, remaining: 77, burst_remaining: 60, blocked_until: null });
  expect(known.reset_at).toMatch(ISO);
});

test('an instance that does not exist has no status', async () => {
  expect(await reader.read('ins_unknown')).toBeUndefined();
});

test('what is left of the records is told, also when all of them are deleted', async () => {
  const { claim } = await store.claimRun();
  expect(await read(claim.instanceId)).toMatchObject({ has_copy: false });
  await store.write(claim, ['{"id":"1"}']);
  await store.remove(claim, ['1'], NOW);
  expect(await read(claim.instanceId)).toMatchObject({
    has_copy: true,
    resources: { contacts: { stored: 0 } },
  });
  await store.removeCopy(claim.instanceId);
  expect(await read(claim.instanceId)).toMatchObject({ has_copy: false });
});

test('all of them a page at a time, the oldest first, and others have their turn in between', async () => {
  for (let n = 0; n < 150; n++) await store.addInstance();
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  const first = await reader.readPage(1);
  clearImmediate(next);
  expect(first.instances).toHaveLength(100);
  // About one for each; whether the first and the last of them count is for the event loop to say.
  expect(turns).toBeGreaterThanOrEqual(90);
  const second = await reader.readPage(2);
  const { total } = second;
  expect(total).toBeGreaterThan(154);
  const all = [...first.instances, ...second.instances].map(({ id }) => id);
  expect(all).toHaveLength(total);
  expect(all).toEqual(all.toSorted((one, other) => Number(one.slice(4)) - Number(other.slice(4))));
  expect(await reader.readPage(9)).toEqual({ ...second, instances: expect.any(Array), page: 2 });
});
