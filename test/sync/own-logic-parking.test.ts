import { expect, test, vi } from 'vitest';
import { ServiceError, type ServiceErrorFacts } from '../../src/client/errors.ts';
import type { RunClaim } from '../../src/store/runs.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import { NO_FAILURES, retryParked, tellOwnLogic } from '../../src/sync/own-logic-parking.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore, pageOf } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const store = await openTestStore();
const context = { logger: testLogger().logger, signal: new AbortController().signal } as SliceContext;
const BATCH = { created: [{ id: '1' }] };
const MINUTE_MS = 60_000;

/** A run whose own logic does this, at a time that the test moves. */
async function newRun(ownLogic: OwnLogic) {
  const { claim } = await store.claimRun();
  const instance = await store.instances.find(claim.instanceId);
  const clock = { now: NOW };
  const parts = {
    ...store,
    ownLogic,
    ownLogicTimeoutMs: MINUTE_MS,
    now: () => clock.now,
  } as unknown as SyncParts;
  const work = { claim, instance, resource: { name: 'contacts' } } as SliceWork;
  const read = async () => (await store.runs.find(claim)) ?? expect.unreachable();
  return { claim, clock, parts, work, read };
}

/** Tries a batch until it is parked; answers with what, how many minutes after its first call, and the waits before. */
async function tryUntilParked(facts: ServiceErrorFacts) {
  const { claim, clock, parts, work, read } = await newRun(async () => {
    throw new ServiceError('wait', 'Not now.', facts);
  });
  const waits = [];
  while (waits.length < 50) {
    try {
      const parking = await tellOwnLogic(parts, work, await read(), BATCH, context);
      return { parking, waits, minutes: (clock.now - NOW) / MINUTE_MS };
    } catch (error) {
      const outcome = await endSlice(parts, claim, await read(), error, context);
      const { state, waiting_for, error: shown } = await read();
      waits.push({ state, waiting_for, shown });
      clock.now = outcome.kind === 'wait' ? outcome.until : Number.NaN;
    }
  }
  return expect.unreachable('never parked');
}

test('the company’s own limit may hold up a batch for some windows, and is shown as what it waits for', async () => {
  const { parking, waits, minutes } = await tryUntilParked({ retryAfterMs: MINUTE_MS });
  expect(parking).toMatchObject({ tries: 5 });
  expect(minutes).toBe(4);
  const shown = "The app's own logic failed on a batch of contacts: Not now.";
  expect(waits).toEqual(Array(4).fill({ state: 'waiting', waiting_for: 'limit', shown }));
});

test('trouble of the service holds it up for some minutes at the most, and a guard that asks for more not at all', async () => {
  const trouble = await tryUntilParked({ status: 503, retryAfterMs: 2 * MINUTE_MS });
  expect(trouble.parking).toMatchObject({ tries: 3 });
  expect(trouble.minutes).toBe(4);
  expect(trouble.waits[0]).toMatchObject({ waiting_for: 'retry' });
  const guard = await tryUntilParked({ status: 429, tier: '1', retryAfterMs: 60 * MINUTE_MS });
  expect(guard).toMatchObject({ parking: { tries: 1 }, waits: [], minutes: 0 });
});

test('a wait of no length has pauses all the same', async () => {
  const { parking, minutes } = await tryUntilParked({ retryAfterMs: 0 });
  expect(parking).toMatchObject({ tries: 5 });
  expect(minutes * MINUTE_MS).toBeGreaterThanOrEqual(250 + 500 + 1_000 + 2_000);
});

test('what a batch is parked with, and tried in vain with again, is shown without secrets', async () => {
  const { claim, parts, work, read } = await newRun(async () => {
    throw new Error('The warehouse refused at_secret.');
  });
  parts.hideSecrets = (text) => text.replaceAll('at_secret', '[redacted]');
  const shown = "The app's own logic failed on a batch of contacts: The warehouse refused [redacted].";
  const parking = await tellOwnLogic(parts, work, { own_tries: 4, own_since: NOW }, BATCH, context);
  expect(parking).toEqual({ tries: 5, error: shown });
  await park(claim, ['a']);
  await retryParked(parts, work, { ...(await read()), started_at: NOW }, () => false, context);
  expect(await store.parked.list(claim, 5)).toMatchObject([{ tries: 2, error: shown }]);
});

test('the next batch begins anew', async () => {
  const { claim, clock, parts, work, read } = await newRun(async () => {
    throw new ServiceError('wait', 'Not now.', { status: 503, retryAfterMs: MINUTE_MS });
  });
  const error = await tellOwnLogic(parts, work, NO_FAILURES, BATCH, context).catch((thrown) => thrown);
  await endSlice(parts, claim, await read(), error, context);
  expect(await read()).toMatchObject({ own_tries: 1, own_since: NOW });
  await store.write(claim, ['{"id":"1"}'], { next: 'https://x.example/next' });
  expect(await read()).toMatchObject({ own_tries: 0, own_since: null, error: null });
  clock.now += 60 * MINUTE_MS;
  await expect(tellOwnLogic(parts, work, await read(), BATCH, context)).rejects.toMatchObject({
    tries: 1,
    since: clock.now,
  });
});

test('an end of the grant that no one has noted is the own logic’s own error; one that is noted ends the run', async () => {
  const { claim, parts, work } = await newRun(async () => {
    throw new ServiceError('reauthorize', 'No more.');
  });
  const tell = () => tellOwnLogic(parts, work, NO_FAILURES, BATCH, context);
  await expect(tell()).rejects.toMatchObject({ remedy: 'wait', name: 'OwnLogicError' });
  await store.instances.setStatus(claim.instanceId, 'needs_reauthorization', { from: ['active'] });
  await expect(tell()).rejects.toMatchObject({ remedy: 'reauthorize' });
});

/** Own logic that asks the service again and again until it may end; each answer is good, and takes a second. */
function polling() {
  let isOver = false;
  const ownLogic: OwnLogic = async (_batch, { service }) => {
    while (!isOver) await (service as unknown as () => Promise<void>)();
  };
  const serviceFor: SyncParts['serviceFor'] = ({ around = (call) => call() }) => {
    const ask = () => around(() => new Promise<void>((resolve) => setTimeout(resolve, 1_000)));
    return ask as unknown as ReturnType<SyncParts['serviceFor']>;
  };
  const end = () => {
    isOver = true;
  };
  return { ownLogic, serviceFor, end };
}

/** Lets some minutes of timers pass. */
async function passMinutes(minutes: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(minutes * MINUTE_MS);
  // What that has set off is between this process and its database.
  await new Promise((resolve) => setImmediate(resolve));
}

test.each(['taken', 'not taken'])(
  'own logic that is at work for long is shown while it is, with since when, and no more when its batch is %s',
  async (end) => {
    const { ownLogic, serviceFor, end: endPolling } = polling();
    const { parts, work, read } = await newRun(async (batch, context) => {
      await ownLogic(batch, context);
      if (end === 'not taken') throw new Error('Not these.');
    });
    parts.serviceFor = serviceFor;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const telling = tellOwnLogic(parts, work, { own_tries: 4, own_since: null }, BATCH, context);
      await passMinutes(1);
      expect(await read()).toMatchObject({ state: 'running', error: null });
      await passMinutes(1);
      const since = new Date(NOW).toISOString().slice(11, 19);
      expect(await read()).toMatchObject({
        state: 'waiting',
        error: `The app's own logic has been at work on a batch of contacts since ${since} UTC, waits for the service included.`,
      });
      endPolling();
      await passMinutes(1);
      expect(await telling).toEqual(
        end === 'taken' ? undefined : { tries: 5, error: expect.stringContaining('Not these.') },
      );
      expect(await read()).toMatchObject({ state: 'running', waiting_for: null, error: null });
    } finally {
      vi.useRealTimers();
    }
  },
);

test('own logic that asks the service without end is ended, tried once more, then parked; and so is each further try', async () => {
  const { ownLogic, serviceFor } = polling();
  const { claim, parts, work, read, clock } = await newRun(ownLogic);
  parts.serviceFor = serviceFor;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const first = tellOwnLogic(parts, work, NO_FAILURES, BATCH, context).catch((thrown) => thrown);
    await passMinutes(32);
    expect(await first).toMatchObject({ isTimeout: true, tries: 1 });
    await endSlice(parts, claim, await read(), await first, context);
    const second = tellOwnLogic(parts, work, await read(), BATCH, context);
    await passMinutes(32);
    expect(await second).toMatchObject({ tries: 2, error: expect.stringContaining('after 31 minutes') });

    await park(claim, ['a']);
    clock.now = NOW + MINUTE_MS;
    const third = retryParked(
      parts,
      work,
      { ...(await read()), started_at: clock.now },
      () => false,
      context,
    );
    await passMinutes(2);
    expect(await read()).toMatchObject({ error: expect.stringContaining('at work on a batch of contacts') });
    await passMinutes(30);
    expect(await third).toBe(false);
    expect(await store.parked.list(claim, 5)).toMatchObject([
      { tries: 2, error: expect.stringContaining('after 31 minutes') },
    ]);
    expect(await read()).toMatchObject({ state: 'running', error: null });
  } finally {
    vi.useRealTimers();
  }
});

async function park(claim: RunClaim, ids: string[]) {
  const texts = ids.map((id) => JSON.stringify({ id }));
  const page = pageOf(texts, 'https://x.example/next');
  const changes = await store.pages.compare({ instance_id: claim.instanceId, resource: 'contacts' }, page);
  await store.pages.commit(claim, page, changes, NOW - 1, { error: 'Before.', tries: 1 });
}

test('of parked batches that have to wait, a slice tries one, and notes when it may be tried again', async () => {
  const { claim, clock, parts, work, read } = await newRun(async () => {
    throw new ServiceError('wait', 'Not now.', { status: 503, retryAfterMs: 5 * MINUTE_MS });
  });
  for (const id of ['a', 'b']) await park(claim, [id]);
  clock.now = NOW + MINUTE_MS;
  const run = { ...(await read()), started_at: clock.now };
  expect(await retryParked(parts, work, run, () => false, context)).toBe(false);
  expect(await store.parked.list(claim, 5)).toMatchObject([
    { tries: 1, tried_at: NOW - 1, error: 'Before.' },
    { tries: 2, tried_at: NOW + 6 * MINUTE_MS, error: expect.stringContaining('Not now.') },
  ]);
  // Nobody's time is used up by it: another run before that moment leaves it alone.
  expect((await store.parked.nextDue(claim, NOW + 5 * MINUTE_MS))?.created).toEqual(['{"id":"b"}']);
});

test('a call of the service waits for a parked batch as long as for a page, for one of the next page through many windows', async () => {
  const { claim, parts, work, read } = await newRun(async (_batch, { service }) => void service);
  const waits: (number | undefined)[] = [];
  parts.serviceFor = ({ maxWaitMs }) => {
    waits.push(maxWaitMs);
    return {} as ReturnType<SyncParts['serviceFor']>;
  };
  expect(await tellOwnLogic(parts, work, await read(), BATCH, context)).toBe(undefined);
  await park(claim, ['a']);
  const run = { ...(await read()), started_at: NOW };
  expect(await retryParked(parts, work, run, () => false, context)).toBe(false);
  expect(waits).toEqual([10 * MINUTE_MS, 2 * MINUTE_MS]);
});

test('a parked batch that is told late, when another worker has the run, leaves its records in doubt', async () => {
  for (const end of [async () => undefined, () => Promise.reject(new Error('Not now.'))]) {
    const { claim, parts, work, read } = await newRun(async () => {
      await store.runs.claim(claim);
      await end();
    });
    await park(claim, ['a', 'b']);
    const key = { instance_id: claim.instanceId, resource: 'contacts' };
    const compare = () => store.pages.compare(key, pageOf(['{"id":"a"}', '{"id":"b"}']));
    expect(await compare()).toMatchObject({ created: [], changed: [] });
    const run = { ...(await read()), started_at: NOW };
    expect(await retryParked(parts, work, run, () => false, context)).toBe(false);
    expect(await compare()).toMatchObject({ created: [0, 1], changed: [] });
    expect(await store.parked.count(claim)).toBe(1);
  }
});

test('a parked record whose document is damaged keeps no other from being told', async () => {
  const told: unknown[] = [];
  const { claim, parts, work, read } = await newRun(async ({ created }) => {
    told.push(...created.map(({ id }) => id));
  });
  await park(claim, ['damaged', 'whole']);
  await store.db.updateTable('records').set({ document: '{"id":' }).where('id', '=', 'damaged').execute();
  expect(await retryParked(parts, work, { ...(await read()), started_at: NOW }, () => false, context)).toBe(
    false,
  );
  expect(told).toEqual(['whole']);
  expect(await store.parked.count(claim)).toBe(0);
});

test('a shutdown ends the tries between two parked batches; the others are tried by the next slice', async () => {
  const told: unknown[] = [];
  const stopping = new AbortController();
  const { claim, clock, parts, work, read } = await newRun(async ({ created }) => {
    // At the next turn of the event loop: by then this batch is taken.
    if (told.length === 0) setImmediate(() => stopping.abort());
    told.push(...created.map(({ id }) => id));
  });
  for (const id of ['a', 'b', 'c']) await park(claim, [id]);
  const retry = async (signal: AbortSignal) =>
    retryParked(parts, work, { ...(await read()), started_at: clock.now }, () => false, {
      ...context,
      signal,
    });
  expect(await retry(stopping.signal)).toBe(true);
  expect([told, await store.parked.count(claim)]).toEqual([['a'], 2]);
  expect(await retry(context.signal)).toBe(false);
  expect([told, await store.parked.count(claim)]).toEqual([['a', 'b', 'c'], 0]);
});

test('a list that was full goes on when the own logic takes what is parked, though the run goes on at its place', async () => {
  let isWell = false;
  const { claim, clock, parts, work, read } = await newRun(async ({ created }) => {
    if (!isWell || created.some(({ id }) => id === 'poison')) throw new Error('Not this one.');
  });
  clock.now = NOW + MINUTE_MS;
  // All of them in this run.
  await park(claim, ['1']);
  await store.db
    .updateTable('parked_batches')
    .set({ tried_at: clock.now })
    .where('list', '=', (await read()).list)
    .execute();
  const { place: _place, ...another } = await store.db
    .selectFrom('parked_batches')
    .selectAll()
    .where('list', '=', (await read()).list)
    .executeTakeFirstOrThrow();
  const others = Array.from({ length: 999 }, () => another);
  await store.db.insertInto('parked_batches').values(others).execute();
  const poison = { created: [{ id: 'poison' }] };
  const before = { own_tries: 5, own_since: NOW };
  const refused = tellOwnLogic(parts, work, before, poison, context);
  await expect(refused).rejects.toThrow('So many batches are parked already that this one has to wait.');

  await store.runs.fail(claim, { error: 'Full.', keepsPlace: true, now: clock.now });
  clock.now += 10 * MINUTE_MS;
  isWell = true;
  await store.runs.start(claim, clock.now);
  const run = (await store.runs.claim(claim)) ?? expect.unreachable();
  expect(run).toMatchObject({ cursor: 'https://x.example/next', started_at: NOW });
  const again = { ...work, claim: { ...claim, fence: run.fence } };
  expect(await retryParked(parts, again, run, () => false, context)).toBe(false);
  expect(await store.parked.count(claim)).toBe(0);
  expect(await tellOwnLogic(parts, again, before, poison, context)).toMatchObject({ tries: 6 });
});

test('for an instance that was paused since, no parked batch is tried', async () => {
  let calls = 0;
  const { claim, parts, work, read } = await newRun(async () => {
    calls++;
  });
  await park(claim, ['a']);
  const run = { ...(await read()), started_at: NOW };
  await store.instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
  expect(await retryParked(parts, work, run, () => false, context)).toBe(false);
  expect(calls).toBe(0);
  expect(await store.parked.list(claim, 5)).toMatchObject([{ tries: 1, tried_at: NOW - 1 }]);
});

test('a try that ends as the grant does says nothing about its batch', async () => {
  const over = new ServiceError('reauthorize', 'The grant is over.');
  const { claim, parts, work, read } = await newRun(async () => {
    const row = (await store.tokens.find(claim.instanceId)) ?? expect.unreachable();
    await store.tokens.reject(row, over.message);
    throw over;
  });
  await park(claim, ['a']);
  const before = await store.parked.list(claim, 5);
  const run = { ...(await read()), started_at: NOW };
  await expect(retryParked(parts, work, run, () => false, context)).rejects.toMatchObject({
    remedy: 'reauthorize',
  });
  expect(await store.parked.list(claim, 5)).toEqual(before);
});
