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
const reason = (kind: string) => ({ error_kind: kind, error_detail: 'The reason.' });
const SERVER_ERROR = failure('server_error', { status: 500 });

/** A run after its first page. Its clock moves with its waits. */
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
  const read = async (): Promise<Run> =>
    (await store.runs.history(claim.list, 'full', 1))[0] ?? expect.unreachable();
  return {
    ends,
    clock,
    read,
    write: (document: string, next: string) => store.write(claim, [document], { next }),
    /** Log lines about failed runs. */
    failures: () => lines.filter(({ msg }) => String(msg).startsWith('the run failed')),
    failingSince: async () => (await store.list(claim)).failing_since,
    /** Ends a slice with an error, and lets the wait pass. */
    async meet(error: unknown, { isOfPage = true, signal = context.signal } = {}) {
      const {
        run: claimed,
        list,
        ...held
      } = (await store.runs.claim(claim, clock.now)) ?? expect.unreachable('it is closed');
      claim = { ...claim, ...held.claim };
      if (claimed === undefined) expect.unreachable('it is closed');
      const counts = { requests: 2, refused: 1 };
      const facts = { work: { instance, resource, claim, list }, isOfPage, counts };
      const outcome = await endSlice(parts, claimed, error, { ...context, logger, signal }, facts);
      const waitMs = outcome.kind === 'wait' ? outcome.until - clock.now : undefined;
      clock.now += waitMs ?? 0;
      return { outcome, waitMs, run: await read() };
    },
  };
}

describe('a failure that', () => {
  const waiting = { state: 'waiting', cursor: PAGE_2, finished_at: null, attempt: 0 };

  const asksToWait = { retryAfterMs: 7_000 };

  test.each<[string, ServiceError, number | undefined, object, boolean?]>([
    [
      'is the limit waits without a reason',
      failure('rate_limited', { status: 429, ...asksToWait }),
      7_000,
      { ...waiting, waiting_for: 'limit', wait_until: NOW + 7_000, error_kind: null },
    ],
    [
      'asks to wait waits as long, with its reason',
      failure('server_error', { status: 503, ...asksToWait }),
      7_000,
      { ...waiting, waiting_for: 'retry', ...reason('server_error'), stuck_since: NOW },
    ],
    [
      'is the limit of the token route waits with its reason',
      failure('rate_limited', { status: 429, ...asksToWait }),
      7_000,
      { ...waiting, waiting_for: 'retry', ...reason('rate_limited'), stuck_since: null },
      false,
    ],
    [
      'another caller’s refresh met waits for that refresh',
      failure('unreachable', { isRepeat: true, ...asksToWait }),
      7_000,
      { ...waiting, waiting_for: 'retry', error_kind: null, stuck_since: null },
      false,
    ],
    [
      'needs a new authorization ends the job and keeps the cursor',
      failure('reauthorize'),
      undefined,
      { ...waiting, waiting_for: 'turn', wait_until: null },
    ],
    [
      'concerns our credentials is retried in ten minutes',
      failure('credentials'),
      10 * MINUTE_MS,
      { ...waiting, state: 'failed', attempt: 1, ...reason('credentials'), waiting_for: 'retry' },
    ],
    [
      'no retry can change closes the run',
      failure('refused', { status: 404 }),
      undefined,
      { state: 'failed', finished_at: NOW, ...reason('refused'), wait_until: null },
    ],
    [
      'is a refusal that asks to wait does not close the run',
      failure('refused', { status: 403, ...asksToWait }),
      7_000,
      { ...waiting, waiting_for: 'retry', ...reason('refused') },
    ],
  ])('%s', async (_what, error, waitMs, run, isOfPage) => {
    const { meet } = await openRun();
    const met = await meet(error, { isOfPage });
    expect(met.outcome.kind).toBe(waitMs === undefined ? 'ended' : 'wait');
    expect(met.waitMs).toBe(waitMs);
    expect(met.run).toMatchObject(run);
  });

  test.each(['store', 'redis'])('of the %s is thrown, as nothing can be written', async (kind) => {
    const { meet, read } = await openRun();
    const error = kind === 'store' ? new StoreError('away') : new RedisError('away');
    await expect(meet(error)).rejects.toBe(error);
    expect(await read()).toMatchObject({ state: 'running', error_kind: null });
  });

  test('comes at a shutdown leaves the run to the next worker', async () => {
    const { meet } = await openRun();
    const { outcome, run } = await meet(new Error('aborted'), { signal: AbortSignal.abort() });
    expect(outcome).toEqual({ kind: 'yield', pages: 1 });
    expect(run).toMatchObject({ ...waiting, waiting_for: 'turn', requests: 3, refused: 1 });
  });
});

test('the seventh try fails the run, and growing pauses go on', async () => {
  const { meet, ends, failures, failingSince } = await openRun();
  for (let attempt = 1; attempt <= 9; attempt++) {
    const { run, waitMs } = await meet(SERVER_ERROR);
    const full = Math.min(500 * 2 ** (attempt - 1), MINUTE_MS);
    expect(run).toMatchObject({ attempt, cursor: PAGE_2, finished_at: null, stuck_since: NOW });
    expect(run.state).toBe(attempt < 7 ? 'waiting' : 'failed');
    expect(waitMs).toBeGreaterThanOrEqual(full / 2);
    expect(waitMs).toBeLessThanOrEqual(full);
  }
  expect(ends).toEqual(['failed']);
  expect(failures()).toMatchObject([
    { level: 'warn', company: expect.stringContaining('Company'), records: 1, requests: 13, refused: 6 },
  ]);
  expect(await failingSince()).toBe(NOW);
});

test('45 minutes without a page close the run', async () => {
  const { meet, clock, read, failures } = await openRun();
  for (let tries = 0; (await read()).finished_at === null; tries++) {
    if (tries > 100) expect.unreachable('the run stays open');
    await meet(SERVER_ERROR);
  }
  expect(await read()).toMatchObject({ state: 'failed', error_kind: 'server_error' });
  expect(failures().map(({ msg }) => msg)).toEqual(['the run failed and is retried', 'the run failed']);
  expect(failures()[1]).toMatchObject({ seconds: expect.any(Number), err: { message: 'The reason.' } });
  expect(clock.now - NOW).toBeGreaterThanOrEqual(45 * MINUTE_MS);
  expect(clock.now - NOW).toBeLessThan(47 * MINUTE_MS);
});

test.each<[string, unknown, boolean]>([
  ['the limit', failure('rate_limited', { status: 429, retryAfterMs: MINUTE_MS }), true],
  ['an error outside of the page', SERVER_ERROR, false],
])('%s never costs a run its cursor', async (_what, error, isOfPage) => {
  const { meet, clock } = await openRun();
  for (let tries = 0; tries < 100; tries++) {
    const { run } = await meet(error, { isOfPage });
    expect(run).toMatchObject({ cursor: PAGE_2, finished_at: null, stuck_since: null });
    clock.now += MINUTE_MS;
  }
});

test('a page resets the failures', async () => {
  const { meet, read, write, clock } = await openRun();
  await meet(SERVER_ERROR);
  clock.now += 44 * MINUTE_MS;
  await write('{"id":"2"}', `${PAGE_2}2`);
  expect(await read()).toMatchObject({ attempt: 0, stuck_since: null, error_kind: null, error_detail: null });
  clock.now += 2 * MINUTE_MS;
  const at = clock.now;
  expect((await meet(SERVER_ERROR)).run).toMatchObject({ attempt: 1, stuck_since: at, finished_at: null });
});

test('a failed run stays failed while the service asks to wait', async () => {
  const { meet } = await openRun();
  for (let tries = 1; tries <= 7; tries++) await meet(SERVER_ERROR);
  const { run, waitMs } = await meet(failure('server_error', { status: 503, retryAfterMs: 5_000 }));
  expect([run.state, waitMs]).toEqual(['failed', 5_000]);
});
