import { describe, expect, it } from 'vitest';
import type { ServiceClient } from '../../src/client/calls/call-types.ts';
import type { ClientFor } from '../../src/client/calls/service-client.ts';
import { ServiceError } from '../../src/client/errors.ts';
import type { Instance } from '../../src/store/instances.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import { callOwnLogic } from '../../src/sync/own-logic-call.ts';
import { testLogger } from '../support/test-logger.ts';

const instance = { id: 'ins_1', company_id: 'cmp_1' } as Instance;
const created = [{ id: 'cnv_1' }];

/** Calls the own logic as a page does; tells which clients were made for it. */
async function call(
  ownLogic: OwnLogic,
  changes: Parameters<typeof callOwnLogic>[2] = { created },
  of = instance,
  watch: Parameters<typeof callOwnLogic>[4] = {},
) {
  const made: ClientFor[] = [];
  const shutdown = new AbortController();
  const serviceFor = (whose: ClientFor) => {
    made.push(whose);
    return {} as ServiceClient;
  };
  const context = { logger: testLogger().logger, signal: shutdown.signal };
  const place = { instance: of, resource: 'conversations' };
  await callOwnLogic({ ownLogic, ownLogicTimeoutMs: 60_000, serviceFor }, place, changes, context, watch);
  return { made, shutdown };
}

/** What the run is told when the own logic throws this. */
async function failure(thrown: unknown): Promise<ServiceError> {
  const error = await call(async () => {
    throw thrown;
  }).catch((reason: unknown) => reason);
  if (error instanceof ServiceError) return error;
  throw error;
}

describe('the service that the own logic is handed', () => {
  it('is that of the batch’s instance, ends with the process, and waits for many windows', async () => {
    const { made, shutdown } = await call(async (_batch, { service }) => {
      expect(service).toBeDefined();
    });
    expect(made).toMatchObject([{ instanceId: 'ins_1', company: 'cmp_1', maxWaitMs: 600_000 }]);
    shutdown.abort();
    expect(made[0]?.signal?.aborted).toBe(true);
  });

  it('asks before each request whether its run goes on', async () => {
    const isWanted = async () => false;
    const { made } = await call(async (_batch, { service }) => void service, undefined, undefined, {
      isWanted,
    });
    expect(made[0]?.isWanted).toBe(isWanted);
  });

  it('keeps the limits by the instance where the company is not known, as the sync does', async () => {
    const { made } = await call(
      async (_batch, { service }) => void service,
      { created },
      {
        ...instance,
        company_id: null,
      },
    );
    expect(made).toMatchObject([{ instanceId: 'ins_1', company: 'ins_1' }]);
  });

  it('is not made for logic that does not want it', async () => {
    expect((await call(async () => {})).made).toEqual([]);
  });
});

describe('an error of the own logic', () => {
  it('holds the page back and says whose it is', async () => {
    const error = await failure(new Error('no such table: leads'));
    expect(error).toMatchObject({ remedy: 'wait', status: undefined, retryAfterMs: undefined });
    expect(error.message).toBe(
      "The app's own logic failed on a batch of conversations: no such table: leads",
    );
  });

  it('is shown by its beginning, up to a word’s end, where it says very much', async () => {
    const error = await failure(new Error(`${'row '.repeat(240)}${'a-'.repeat(150_000)}`));
    expect(error.message).toMatch(/: (?:row )+…$/);
  });

  it('that is a call which has to wait, says for how long, and for whom', async () => {
    const facts = { status: 429, retryAfterMs: 70_000, tier: '2' };
    const error = await failure(new ServiceError('wait', 'Slow down (429).', facts));
    expect(error).toMatchObject({ remedy: 'wait', ...facts, waitsFor: 'service' });
    expect(error.message).toContain('own logic failed on a batch of conversations: Slow down (429).');
    expect(error.cause).toMatchObject({ name: 'ServiceError', message: 'Slow down (429).', status: 429 });
  });

  it.each([
    ['the company’s own limit', { retryAfterMs: 60_000 }, 'limit', 60_000],
    ['a 429 that no guard gave', { status: 429, retryAfterMs: 200.5 }, 'limit', 201],
    ['longer than any window', { status: 429, retryAfterMs: 121_000 }, 'service', 121_000],
    ['trouble', { status: 503, retryAfterMs: 1_000 }, 'service', 1_000],
    ['trouble that says nothing', { status: 500 }, 'service', undefined],
    ['without end', { retryAfterMs: Number.POSITIVE_INFINITY }, 'service', 900_000],
    ['no number', { retryAfterMs: Number.NaN }, 'service', undefined],
    ['the past', { retryAfterMs: -5 }, 'limit', 0],
  ])('that waits for %s', async (_what, facts, waitsFor, retryAfterMs) => {
    expect(await failure(new ServiceError('wait', 'Wait.', facts))).toMatchObject({ waitsFor, retryAfterMs });
  });

  it('keeps what the log says of it and of what is behind it, and nothing that is thrown when it is looked at', async () => {
    const behind = Object.assign(new Error('relation does not exist'), { code: '42P01', client: {} });
    const error = await failure(new Error('not written', { cause: new AggregateError([behind]) }));
    const cause = error.cause as Error & { cause: Error & { cause: Error & { code: string } } };
    expect(cause.message).toBe('not written');
    expect(cause.stack).toContain('own-logic-call.test.ts');
    expect(cause.cause.cause).toMatchObject({ message: 'relation does not exist', code: '42P01' });
    expect(cause.cause.cause).not.toHaveProperty('client');

    const trap = () => {
      throw new Error('trap');
    };
    const hostile = await failure(new Proxy(new ServiceError('wait', 'x'), { get: trap }));
    expect(hostile.cause).toBeUndefined();
    expect(hostile.message).toContain('it threw something that says nothing.');
  });

  it('that is a call which the grant’s end stopped, stops the run', async () => {
    expect((await failure(new ServiceError('reauthorize', 'No more.'))).remedy).toBe('reauthorize');
  });

  it('that is a call which was refused for good, does not send the run back to its first page', async () => {
    const refused = new ServiceError('give_up', 'Not found (404).', { status: 404, retryAfterMs: 900 });
    expect(await failure(refused)).toMatchObject({ remedy: 'wait', status: 404, retryAfterMs: undefined });
  });

  it('that is a call which may have taken effect, says so', async () => {
    const lost = new ServiceError('wait', 'Lost.', { mayHaveTakenEffect: true });
    expect(await failure(lost)).toMatchObject({ remedy: 'wait', mayHaveTakenEffect: true });
  });
});

it('is not called with a batch that changes nothing', async () => {
  let calls = 0;
  await call(async () => {
    calls++;
  }, {});
  expect(calls).toBe(0);
});
