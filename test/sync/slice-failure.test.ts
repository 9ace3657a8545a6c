import { expect, test } from 'vitest';
import { CREDENTIALS_REFUSED } from '../../src/auth/tokens.ts';
import { ServiceError } from '../../src/client/errors.ts';
import { AllowedOrigins } from '../../src/client/next-address.ts';
import { checkLength, MOST_PAGES } from '../../src/client/page-chain.ts';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const MINUTE_MS = 60_000;
const PLACE = 'https://x.example/contacts?page_token=2';

const store = await openTestStore();
const { runs } = store;
const { logger, lines } = testLogger();
const context = { logger, signal: new AbortController().signal } as SliceContext;

const trouble = () => new ServiceError('wait', 'The service has trouble (500: unknown page token).');
const refusal = (status: number, remedy: 'wait' | 'give_up' = 'give_up') =>
  new ServiceError(remedy, `The service refused the request (${status}).`, { status, retryAfterMs: 2_000 });

/** A run in the middle of its list, at a time that goes on as the run waits. */
async function newRun() {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}', '{"id":"2"}'], { next: PLACE });
  const clock = { now: NOW };
  const parts = { ...store, now: () => clock.now } as unknown as SyncParts;
  const read = async () => (await runs.find(claim)) ?? expect.unreachable();
  /** Meets an error, and waits as long as is wanted; of the page, if nothing else is said. */
  async function meet(error: unknown, isOfPage = true) {
    const { fence } = (await runs.claim(claim)) ?? expect.unreachable('not to be claimed');
    const outcome = await endSlice(parts, { ...claim, fence }, await read(), error, context, isOfPage);
    if (outcome.kind === 'wait') clock.now = outcome.until;
    return read();
  }
  return {
    claim,
    clock,
    read,
    meet,
    /** Meets an error until the run has failed, and lets it start again by itself; answers with how it failed. */
    async failOnce(error: () => unknown, isOfPage = true) {
      for (let tries = 1; (await meet(error(), isOfPage)).state !== 'failed'; tries++)
        if (tries === 50) expect.unreachable('never fails');
      const failed = await read();
      clock.now += 10 * MINUTE_MS;
      await runs.start(claim, clock.now);
      return failed;
    },
  };
}

test('a run whose page never comes keeps its place through trouble of half an hour, and begins anew within about an hour', async () => {
  const { claim, clock, failOnce, read } = await newRun();
  while (clock.now < NOW + 40 * MINUTE_MS) {
    const failed = await failOnce(trouble);
    expect(failed.error).toContain('Tried 7 times; it will be tried again by itself.');
    expect(await read()).toMatchObject({ state: 'waiting', cursor: PLACE, pages: 1 });
  }
  const begun = lines.length;
  while ((await read()).cursor !== null) {
    const { error } = await failOnce(trouble);
    if ((await read()).cursor === null)
      expect(error).toBe(
        'The service has trouble (500: unknown page token). No page has come from there for 45 minutes: the list is read again from its first page, by itself.',
      );
  }
  expect(clock.now - NOW).toBeLessThan(75 * MINUTE_MS);
  expect(await read()).toMatchObject({
    state: 'waiting',
    pages: 0,
    stuck_since: null,
    deleted: 0,
    stored: 2,
  });
  expect(await store.count(claim.instanceId, 'contacts')).toBe(2);
  expect(await store.deletions.seenCount(claim)).toBe(0);
  const told = lines.slice(begun).filter(({ msg }) => msg?.endsWith('the run will begin anew'));
  expect(told.length).toBe(1);
});

test('a page that comes ends that; what is not the page’s own trouble, never begins it', async () => {
  const { claim, failOnce, meet, read } = await newRun();
  await failOnce(trouble);
  expect((await read()).stuck_since).toBeGreaterThan(NOW);
  const { fence } = (await runs.claim(claim)) ?? expect.unreachable();
  await store.write({ ...claim, fence }, ['{"id":"3"}'], { next: `${PLACE}3` });
  expect(await read()).toMatchObject({ stuck_since: null, waits: 0 });
  for (let times = 0; times < 12; times++) await failOnce(() => new Error('Redis is away'), false);
  for (let times = 0; times < 20; times++) await meet(refusal(503, 'wait'), false);
  expect(await meet(refusal(503, 'wait'))).toMatchObject({
    cursor: `${PLACE}3`,
    waits: 1,
    stuck_since: null,
  });
});

test('credentials that the service refuses cost no place, however long, and say nothing of it', async () => {
  const { claim, clock, failOnce, read } = await newRun();
  await failOnce(trouble);
  const { stuck_since } = await read();
  while (clock.now < NOW + 120 * MINUTE_MS) {
    const { attempt } = await failOnce(
      () => new ServiceError('give_up', CREDENTIALS_REFUSED, { kind: 'credentials' }),
      false,
    );
    expect(attempt).toBe(0);
    expect(await read()).toMatchObject({ state: 'waiting', cursor: PLACE, pages: 1, stuck_since });
  }
  expect((await runs.find(claim))?.error).toBeNull();
});

test.each<[string, () => unknown]>([
  [
    'the address of its place may not be asked for any more',
    () => new AllowedOrigins('https://a.example').check(PLACE),
  ],
  ['its list does not end', () => checkLength(MOST_PAGES)],
])('a run begins anew where nothing else helps: %s', async (_what, work) => {
  const { failOnce } = await newRun();
  const error = () => {
    try {
      return work();
    } catch (thrown) {
      return thrown;
    }
  };
  expect(await failOnce(error, false)).toMatchObject({ state: 'failed', cursor: null });
});

test('the first page has no place to lose', async () => {
  const { claim } = await store.claimRun();
  const parts = { ...store, now: () => NOW } as unknown as SyncParts;
  for (let tries = 0; tries < 7; tries++) {
    const run = (await runs.find(claim)) ?? expect.unreachable();
    await endSlice(parts, claim, run, trouble(), context, true);
  }
  expect(await runs.find(claim)).toMatchObject({ state: 'failed', stuck_since: null });
});

test.each([307, 403, 409, 423])(
  'a wait asked for with %d is kept six times in a row, with its place; then the run fails',
  async (status) => {
    const { clock, meet } = await newRun();
    for (let waits = 1; waits <= 6; waits++) {
      expect(await meet(refusal(status))).toMatchObject({
        state: 'waiting',
        waiting_for: 'retry',
        waiting_until: NOW + waits * 2_000,
        attempt: 0,
        cursor: PLACE,
        error: `The service refused the request (${status}). It asked to wait before the next try.`,
      });
    }
    expect(clock.now).toBe(NOW + 12_000);
    expect(await meet(refusal(status))).toMatchObject({ state: 'failed', cursor: null, waits: 0 });
  },
);

test('a page between them begins the count of waits anew', async () => {
  const { claim, meet } = await newRun();
  for (let waits = 0; waits < 6; waits++) await meet(refusal(403));
  const { fence } = (await runs.claim(claim)) ?? expect.unreachable();
  await store.write({ ...claim, fence }, ['{"id":"3"}'], { next: PLACE });
  expect(await meet(refusal(403))).toMatchObject({ state: 'waiting', cursor: PLACE });
});

test('trouble that asks to wait is shown with its reason, uses up no try, and costs the place after an hour', async () => {
  const { clock, meet } = await newRun();
  const busy = () =>
    new ServiceError('wait', 'The service has trouble (503: maintenance).', {
      status: 503,
      retryAfterMs: MINUTE_MS,
    });
  let run = await meet(busy());
  while (run.state === 'waiting') {
    expect(run).toMatchObject({ waiting_for: 'retry', attempt: 0, cursor: PLACE });
    expect(run.error).toBe(
      'The service has trouble (503: maintenance). It asked to wait before the next try.',
    );
    run = await meet(busy());
  }
  expect(clock.now - NOW).toBeGreaterThan(45 * MINUTE_MS);
  expect(clock.now - NOW).toBeLessThan(60 * MINUTE_MS);
  expect(run).toMatchObject({ state: 'failed', cursor: null });
  expect(run.error).toContain('read again from its first page');
});

test('the limit is waited for without a reason, however long, and says nothing of the place', async () => {
  const { meet } = await newRun();
  for (let times = 0; times < 100; times++) {
    expect(await meet(refusal(429, 'wait'))).toMatchObject({
      state: 'waiting',
      waiting_for: 'limit',
      error: null,
      cursor: PLACE,
      stuck_since: null,
    });
  }
});

test('a page for which the app had no room is asked for again and again, at the cost of no try, and the reason is shown', async () => {
  const { meet, clock } = await newRun();
  for (let times = 0; times < 50; times++) {
    const before = clock.now;
    const error = new ServiceError('wait', 'The app had no room for it.', { noRoom: true });
    const run = await meet(error);
    expect(run).toMatchObject({ state: 'waiting', attempt: 0, waits: 0, stuck_since: null, cursor: PLACE });
    expect(run).toMatchObject({ waiting_for: 'retry', error: 'The app had no room for it.' });
    expect(clock.now - before).toBeGreaterThanOrEqual(2_500);
    expect(clock.now - before).toBeLessThanOrEqual(5_000);
  }
});

test.each<[string, unknown, AbortSignal, object]>([
  ['the process that read it ends', new Error('aborted'), AbortSignal.abort(), { kind: 'yield', pages: 1 }],
  [
    'a newer version has migrated the database',
    new NewerSchemaError(['0099']),
    context.signal,
    { kind: 'wait', until: NOW + 3_000, pages: 1 },
  ],
  [
    'the app has to be authorized again',
    new ServiceError('reauthorize', 'The grant is over.'),
    context.signal,
    { kind: 'ended' },
  ],
])(
  'a run keeps its place for the next worker, at the cost of no try, when %s',
  async (_when, error, signal, outcome) => {
    const { claim, read } = await newRun();
    const { fence } = (await runs.claim(claim)) ?? expect.unreachable();
    const parts = { ...store, now: () => NOW } as unknown as SyncParts;
    const held = { ...claim, fence };
    expect(await endSlice(parts, held, await read(), error, { ...context, signal }, true)).toEqual(outcome);
    expect(await read()).toMatchObject({
      state: 'waiting',
      waiting_for: 'turn',
      waiting_until: null,
      attempt: 0,
      cursor: PLACE,
      error: null,
    });
  },
);
