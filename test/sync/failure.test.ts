import { describe, expect, test } from 'vitest';
import { RedisError } from '../../src/service/budget.ts';
import { ServiceError, type ServiceErrorFacts } from '../../src/service/errors.ts';
import { StoreError } from '../../src/store/database.ts';
import type { Run } from '../../src/store/runs.ts';
import { endSlice } from '../../src/sync/failure.ts';
import type { SliceContext, SyncParts } from '../../src/sync/parts.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const MINUTE_MS = 60_000;
const PAGE_2 = 'https://x.example/contacts?page_token=2';

const store = await openTestStore('sqlite');
const context: SliceContext = {
  logger: testLogger().logger,
  signal: new AbortController().signal,
  othersWait: () => false,
};

const failure = (kind: ServiceError['kind'], facts: ServiceErrorFacts = {}) =>
  new ServiceError(kind, 'The reason.', facts);
const SERVER_ERROR = failure('server_error', { status: 500 });

/** A run in the middle of its list, at a time that goes on as the run waits. */
async function openRun() {
  const ends: string[] = [];
  const { logger, lines } = testLogger();
  const clock = { now: NOW };
  const parts = {
    ...store,
    intervalMs: 60 * MINUTE_MS,
    now: () => clock.now,
    onRunEnd: ({ outcome }: { outcome: string }) => void ends.push(outcome),
  } as unknown as SyncParts;
  let claim = await store.claimRun();
  const instance = (await store.instances.find(claim.instanceId)) ?? expect.unreachable();
  const resource = { name: 'contacts', title: 'Contacts', route: '/contacts' };
  await store.write(claim, ['{"id":"1"}'], { next: PAGE_2 });
  const read = async (): Promise<Run> => (await store.runs.history(claim.list, 1))[0] ?? expect.unreachable();
  return {
    ends,
    clock,
    read,
    /** Lines of the log that tell how a run ended. */
    told: () => lines.filter(({ msg }) => String(msg).startsWith('the run failed')),
    failingSince: async () => (await store.list(claim)).failing_since,
    /** Meets an error as a worker's slice does, and lets the wait pass. */
    async meet(error: unknown, { isOfPage = true, signal = context.signal } = {}) {
      const claimed = (await store.runs.claim(claim)) ?? expect.unreachable('it is closed');
      claim = { ...claim, run: claimed.id, fence: claimed.fence };
      const counts = { requests: 2, refused: 1 };
      const facts = { work: { instance, resource, claim }, isOfPage, counts };
      const outcome = await endSlice(parts, claimed, error, { ...context, logger, signal }, facts);
      const waitMs = outcome.kind === 'wait' ? outcome.until - clock.now : undefined;
      clock.now += waitMs ?? 0;
      return { outcome, waitMs, run: await read() };
    },
  };
}

describe('a failure that', () => {
  const waiting = { state: 'waiting', cursor: PAGE_2, finished_at: null, attempt: 0 };

  test.each<[string, unknown, object, object, { isOfPage: boolean }?]>([
    [
      'is the limit’s waits without a reason',
      failure('rate_limited', { status: 429, retryAfterMs: 7_000 }),
      { kind: 'wait', until: NOW + 7_000, pages: 1 },
      { ...waiting, waiting_for: 'limit', wait_until: NOW + 7_000, error_kind: null },
    ],
    [
      'the service asks to wait for waits as long',
      failure('server_error', { status: 503, retryAfterMs: 7_000 }),
      { kind: 'wait', until: NOW + 7_000, pages: 1 },
      {
        ...waiting,
        waiting_for: 'retry',
        error_kind: 'server_error',
        error_detail: 'The reason.',
        stuck_since: NOW,
      },
    ],
    [
      'is the token route’s limit waits with its reason',
      failure('rate_limited', { status: 429, retryAfterMs: 7_000 }),
      { kind: 'wait', until: NOW + 7_000, pages: 1 },
      { ...waiting, waiting_for: 'retry', error_kind: 'rate_limited', stuck_since: null },
      { isOfPage: false },
    ],
    [
      'is of tokens that are refreshed elsewhere waits for those',
      failure('unreachable', { isRepeat: true, retryAfterMs: 3_000 }),
      { kind: 'wait', until: NOW + 3_000, pages: 1 },
      { ...waiting, waiting_for: 'retry', error_kind: null, stuck_since: null },
    ],
    [
      'needs a new authorization ends the job, and leaves the run where it is',
      failure('reauthorize'),
      { kind: 'ended' },
      { ...waiting, waiting_for: 'turn', wait_until: null },
    ],
    [
      'is of our credentials is tried again in ten minutes, from its place',
      failure('credentials'),
      { kind: 'wait', until: NOW + 10 * MINUTE_MS, pages: 1 },
      { state: 'failed', cursor: PAGE_2, finished_at: null, error_kind: 'credentials', waiting_for: 'retry' },
    ],
    [
      'another try does not change closes the run',
      failure('refused', { status: 404 }),
      { kind: 'ended' },
      {
        state: 'failed',
        finished_at: NOW,
        error_kind: 'refused',
        error_detail: 'The reason.',
        wait_until: null,
      },
    ],
    [
      'asks for patience though it is a refusal is not closed',
      failure('refused', { status: 403, retryAfterMs: 2_000 }),
      { kind: 'wait', until: NOW + 2_000, pages: 1 },
      { ...waiting, waiting_for: 'retry', error_kind: 'refused' },
    ],
  ])('%s', async (_what, error, outcome, run, options) => {
    const { meet } = await openRun();
    const met = await meet(error, options);
    expect(met.outcome).toEqual(outcome);
    expect(met.run).toMatchObject(run);
  });

  test.each(['store', 'redis'])('is of the %s is thrown on, as nothing can be written down', async (kind) => {
    const { meet, read } = await openRun();
    const error = kind === 'store' ? new StoreError('away') : new RedisError('away');
    await expect(meet(error)).rejects.toBe(error);
    expect(await read()).toMatchObject({ state: 'running', error_kind: null });
  });

  test('met the end of the process leaves the run to the next worker', async () => {
    const { meet } = await openRun();
    const { outcome, run } = await meet(new Error('aborted'), { signal: AbortSignal.abort() });
    expect(outcome).toEqual({ kind: 'yield', pages: 1 });
    expect(run).toMatchObject({ ...waiting, waiting_for: 'turn', requests: 3, refused: 1 });
  });
});

test('after growing pauses the seventh try has failed, and the run tries on', async () => {
  const { meet, ends, told, failingSince } = await openRun();
  for (let attempt = 1; attempt <= 9; attempt++) {
    const { run, waitMs } = await meet(SERVER_ERROR);
    const full = Math.min(500 * 2 ** (attempt - 1), MINUTE_MS);
    expect(run).toMatchObject({ attempt, cursor: PAGE_2, finished_at: null, stuck_since: NOW });
    expect(run.state).toBe(attempt < 7 ? 'waiting' : 'failed');
    expect(waitMs).toBeGreaterThanOrEqual(full / 2);
    expect(waitMs).toBeLessThanOrEqual(full);
  }
  expect(ends).toEqual(['failed']);
  expect(told()).toMatchObject([
    { level: 'warn', company: expect.stringContaining('Company'), records: 1, requests: 13, refused: 6 },
  ]);
  expect(await failingSince()).toBe(NOW);
});

test('after 45 minutes without a page a run is closed, and the list read anew', async () => {
  const { meet, clock, read, told } = await openRun();
  for (let tries = 0; (await read()).finished_at === null; tries++) {
    if (tries > 100) expect.unreachable('it goes on for ever');
    await meet(SERVER_ERROR);
  }
  expect(await read()).toMatchObject({ state: 'failed', error_kind: 'server_error' });
  expect(told().map(({ msg }) => msg)).toEqual(['the run failed and is retried', 'the run failed']);
  expect(told()[1]).toMatchObject({ seconds: expect.any(Number), err: { message: 'The reason.' } });
  expect(clock.now - NOW).toBeGreaterThanOrEqual(45 * MINUTE_MS);
  expect(clock.now - NOW).toBeLessThan(47 * MINUTE_MS);
});

test.each<[string, unknown, boolean]>([
  ['the limit', failure('rate_limited', { status: 429, retryAfterMs: MINUTE_MS }), true],
  ['what is not the page’s own trouble', SERVER_ERROR, false],
])('%s costs a run no place, however long it lasts', async (_what, error, isOfPage) => {
  const { meet, clock } = await openRun();
  for (let tries = 0; tries < 100; tries++) {
    const { run } = await meet(error, { isOfPage });
    expect(run).toMatchObject({ cursor: PAGE_2, finished_at: null, stuck_since: null });
    clock.now += MINUTE_MS;
  }
});

test('a page that comes ends the trouble', async () => {
  const { meet, read, clock } = await openRun();
  await meet(SERVER_ERROR);
  clock.now += 44 * MINUTE_MS;
  const run = await read();
  await store.write({ run: run.id, list: run.list, fence: run.fence }, ['{"id":"2"}'], {
    next: `${PAGE_2}2`,
  });
  expect(await read()).toMatchObject({ attempt: 0, stuck_since: null, error_kind: null, error_detail: null });
  clock.now += 2 * MINUTE_MS;
  const at = clock.now;
  expect((await meet(SERVER_ERROR)).run).toMatchObject({ attempt: 1, stuck_since: at, finished_at: null });
});

test('a run that has failed stays so while the service asks it to wait', async () => {
  const { meet } = await openRun();
  for (let tries = 1; tries <= 7; tries++) await meet(SERVER_ERROR);
  const { run, waitMs } = await meet(failure('server_error', { status: 503, retryAfterMs: 5_000 }));
  expect([run.state, waitMs]).toEqual(['failed', 5_000]);
});
