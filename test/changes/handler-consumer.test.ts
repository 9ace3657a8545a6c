import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterEach, describe, expect, expectTypeOf, test, vi } from 'vitest';
import {
  type ChangeBatch,
  type ChangeHandler,
  type HandlerContext,
  TargetDown,
} from '../../src/changes/change-handler.ts';
import type { Outbox } from '../../src/changes/collect-writes.ts';
import { deliver } from '../../src/changes/delivery.ts';
import { type HandlerParts, handlerConsumer, takeRejection } from '../../src/changes/handler-consumer.ts';
import type { Settings } from '../../src/integration/types.ts';
import type { ServiceClient } from '../../src/service/calls.ts';
import { ServiceError } from '../../src/service/errors.ts';
import type { ClientFor } from '../../src/service/service-client.ts';
import { HANDLER_CONSUMER } from '../../src/store/changes.ts';
import { StoreError } from '../../src/store/database.ts';
import { lock } from '../acceptance/support/database.ts';
import { DATABASES, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const SECOND_MS = 1_000;

afterEach(() => void vi.useRealTimers());

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, db } = store;
  const { logger } = testLogger();

  /** A handler with a list of these documents. `made` notes the options of its clients. */
  async function open(
    handler: ChangeHandler,
    documents = ['{"id":"a"}'],
    call = async () => undefined as unknown,
  ) {
    const claim = await store.copy(documents);
    const key = { ...claim, consumer: HANDLER_CONSUMER };
    const made: ClientFor[] = [];
    const parts: HandlerParts = {
      handler,
      settings: {} as Settings,
      timeoutMs: SECOND_MS,
      changes,
      db,
      serviceFor(whose) {
        made.push(whose);
        return { listTags: () => whose.around?.(call) } as unknown as ServiceClient;
      },
    };
    const consumer = handlerConsumer(parts);
    const stopping = new AbortController();
    const context = { logger, signal: stopping.signal, retryMs: [1_000] };
    return {
      claim,
      made,
      stopping,
      async deliver() {
        const delivered = await deliver(changes, consumer, key, context, { alone: true });
        return 'again' in delivered ? delivered.again : expect.unreachable('a suspect');
      },
      /** One call of the handler, without a delivery. */
      async take() {
        const held = await store.hold(key, HANDLER_CONSUMER);
        return consumer.take(await changes.read(held.list, held.cursor), held, context);
      },
      row: async () => (await changes.find(claim.list, HANDLER_CONSUMER)) ?? expect.unreachable(),
    };
  }
  const hang = () => new Promise<never>(() => undefined);
  /** Holds the timers of the handler. The promise is for the signal of its call. */
  function holdTimers() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    return Promise.withResolvers<AbortSignal>();
  }

  test('a handler gets ids and documents as values', async () => {
    const batches: ChangeBatch[] = [];
    const documents = [
      '{"id":7,"n":9007199254740993}',
      '{"id":"7"}',
      '{"id":"#7"}',
      '{"id":12345678901234567890}',
    ];
    const { claim, deliver } = await open(async (batch) => void batches.push(batch), documents);
    await deliver();
    const { instanceId } = claim;
    const instance = await store.instances.find(instanceId);
    expect(batches).toMatchObject([{ instanceId, companyId: instance?.company_id, resource: 'contacts' }]);
    const [first, ...others] = batches[0]?.changes ?? [];
    expect(first).toEqual({
      seq: expect.any(Number),
      id: 7,
      change: 'created',
      document: { id: 7, n: 9_007_199_254_740_992 },
      text: documents[0],
    });
    // A number that JavaScript would round comes as its digits.
    expect(others.map(({ id }) => id)).toEqual(['7', '#7', '12345678901234567890']);
    const next = await store.claimRun(claim);
    await store.write(next, documents.slice(1));
    await store.markUnseen(next);
    await deliver();
    expect(batches[1]?.changes).toEqual([
      { seq: expect.any(Number), id: 7, change: 'deleted', document: null, text: null },
    ]);
  });

  test('the context has the database, and a client that a pause stops', async () => {
    const contexts: HandlerContext[] = [];
    const wanted: (boolean | undefined)[] = [];
    const { claim, made, deliver } = await open(async (_batch, context) => {
      contexts.push(context);
      const isWanted = async () => wanted.push(await made[0]?.isWanted?.());
      await isWanted();
      await store.instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
      await isWanted();
    });
    await deliver();
    const [context] = contexts;
    const { instanceId } = claim;
    const found = context?.db as unknown as typeof db;
    expect(await found.selectFrom('instances').select('id').where('id', '=', instanceId).execute()).toEqual([
      { id: instanceId },
    ]);
    // A handler that hangs in one would keep the connection.
    expect(() => found.transaction()).toThrow('return a function');
    expect(made).toMatchObject([
      { instanceId, company: instanceId.replace('ins', 'cmp'), signal: context?.signal },
    ]);
    expect(wanted).toEqual([true, false]);
    // Work that the handler left running hears the end.
    expect(context?.signal.aborted).toBe(true);
  });

  test.each<[string, unknown, string]>([
    ['an error', new Error('It is closed (Bearer A1b2C3d4E5f6G7h8I9).'), 'It is closed (Bearer [redacted]).'],
    [
      'a failed fetch',
      new TypeError('fetch failed', { cause: new Error('no route') }),
      'fetch failed: no route',
    ],
    ['a text', 'closed', 'closed'],
    ['nothing to read', Object.create(null), 'no error'],
    ['a long text', 'much '.repeat(9_000), 'much '.repeat(190)],
  ])('a handler that throws %s has failed, in its own words', async (_what, thrown, words) => {
    const { deliver, row } = await open(async () => Promise.reject(thrown));
    expect(await deliver()).toBeGreaterThan(Date.now());
    const { attempts, error_kind, error_detail } = await row();
    expect([attempts, error_kind]).toEqual([1, 'handler']);
    expect(error_detail).toContain(words);
    expect(error_detail?.length).toBeLessThan(1_010);
  });

  test.each<[string, ServiceError, object]>([
    [
      'to wait',
      new ServiceError('rate_limited', 'Slow down.', { status: 429, retryAfterMs: 60_000 }),
      { attempts: 0 },
    ],
    ['for something else', new ServiceError('refused', 'Not found.', { status: 404 }), { attempts: 1 }],
  ])('an error of the service that asks %s', async (_what, error, expected) => {
    const { deliver, row } = await open(async () => Promise.reject(error));
    await deliver();
    expect(await row()).toMatchObject({ ...expected, error_detail: error.message });
  });

  test.each<[string, ConstructorParameters<typeof TargetDown>[1], number]>([
    ['the wish of the handler', { retryAfterSeconds: 7 }, 7],
    ['a minute without a wish', undefined, 60],
    ['a minute for a wish that is no number', { retryAfterSeconds: Number.NaN }, 60],
    ['a day at most', { retryAfterSeconds: 1e9 }, 24 * 60 * 60],
    ['a moment at least', { retryAfterSeconds: -1 }, 0.1],
  ])('a target that is down costs no try, and the list waits: %s', async (_what, options, seconds) => {
    const { deliver, row } = await open(async () => {
      throw new TargetDown('The CRM is being updated.', options);
    });
    const before = Date.now();
    const again = (await deliver()) ?? expect.unreachable();
    expect(again - before).toBeGreaterThanOrEqual(seconds * SECOND_MS);
    expect(again - Date.now()).toBeLessThanOrEqual(seconds * SECOND_MS);
    expect(await row()).toMatchObject({ attempts: 0, error_detail: 'The CRM is being updated.' });
  });

  test('a rejection that nobody caught fails the call that it comes from', async () => {
    const uncaught = new Error('Nobody caught it.');
    let reject = () => false;
    const { take, deliver, row } = await open(async () => {
      reject = AsyncResource.bind(() => takeRejection(uncaught));
      reject();
    });
    expect(takeRejection(uncaught)).toBe(false);
    await expect(take()).rejects.toThrow('Nobody caught it.');
    // Its call is over: nobody else is to blame.
    const other = deliver();
    expect(reject()).toBe(true);
    await other;
    expect(await row()).toMatchObject({ attempts: 1, error_detail: 'Nobody caught it.' });
  });

  test('a rejection in the returned function rolls it back', async () => {
    const { deliver, row } = await open(async () => async (transaction) => {
      const settings = transaction as unknown as typeof db;
      await settings.insertInto('settings').values({ name: 'unheard', value: '1' }).execute();
      takeRejection(new Error('Nobody caught it.'));
    });
    await deliver();
    expect(await row()).toMatchObject({ cursor: 0, attempts: 1, error_detail: 'Nobody caught it.' });
    expect(await db.selectFrom('settings').selectAll().where('name', '=', 'unheard').execute()).toEqual([]);
  });

  test('time in which others compute is not the handler’s', async () => {
    const { take } = await open(async () => {
      await sleep(200);
      await sleep(100);
    });
    const taken = take();
    await sleep(20);
    for (const startedAt = performance.now(); performance.now() - startedAt < 1.5 * SECOND_MS; );
    expect(await taken).toBeUndefined();
  });

  test('a stream, which would keep the connection, is refused', async () => {
    const { take } = await open(async (_batch, context) => {
      const settings = context.db as unknown as typeof db;
      for await (const _row of settings.selectFrom('settings').selectAll().stream());
    });
    await expect(take()).rejects.toThrow(kind === 'sqlite' ? 'no streams on SQLite' : 'cursor');
  });

  test('calls of the service do not count as the handler’s time', async () => {
    const called = holdTimers();
    const asking = () => new Promise((resolve) => setTimeout(resolve, 60 * SECOND_MS));
    let isAnswered = false;
    const handler: ChangeHandler = async (_batch, context) => {
      called.resolve(context.signal);
      await Promise.all([context.service.listTags(), context.service.listTags()]);
      isAnswered = true;
      await hang();
    };
    const { take } = await open(handler, undefined, asking);
    const taken = take().catch((error) => error);
    const signal = await called.promise;
    await vi.advanceTimersByTimeAsync(60 * SECOND_MS);
    expect([isAnswered, signal.aborted]).toEqual([true, false]);
    await vi.advanceTimersByTimeAsync(SECOND_MS - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect((await taken).message).toBe('The handler took more than 1 s (HANDLER_TIMEOUT_SECONDS).');
    expect(signal.reason).toMatchObject({ message: expect.stringContaining('HANDLER_TIMEOUT_SECONDS') });
  });

  test('at the end of the process a handler has two seconds to heed its signal', async () => {
    const called = holdTimers();
    let isOver = false;
    // Its own time stands still meanwhile.
    const handler: ChangeHandler = async (_batch, { service, signal }) => {
      called.resolve(signal);
      await service.listTags();
    };
    const { take, stopping } = await open(handler, undefined, hang);
    const taken = take().catch((error) => {
      isOver = true;
      return error;
    });
    const signal = await called.promise;
    stopping.abort(new Error('The process ends.'));
    expect(signal.reason).toMatchObject({ message: 'The process ends.' });
    await vi.advanceTimersByTimeAsync(1_999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await taken).toMatchObject({ name: 'ConsumerError', message: 'The process ends.' });
  });

  test('the returned function writes with the cursor, and not afterwards', async () => {
    let late: (() => Promise<unknown>) | undefined;
    const { claim, deliver, row } = await open(async ({ changes: [change] }) => async (transaction) => {
      const settings = transaction as unknown as typeof db;
      const write = (name: string) => settings.insertInto('settings').values({ name, value: '1' }).execute();
      await write(`${change?.id}`);
      late = () => write('late');
    });
    expect(await deliver()).toBeUndefined();
    expect((await row()).cursor).toBe((await store.list(claim)).change_seq);
    await expect(late?.()).rejects.toThrow('The transaction is over.');
    expect((await db.selectFrom('settings').select('name').execute()).map(({ name }) => name)).toEqual(['a']);
  });

  test('a caught error of a statement fails the function on PostgreSQL alone', async () => {
    const { deliver, row } = await open(async () => async (transaction) => {
      await sql`insert into no_such_table values (1)`.execute(transaction).catch(() => undefined);
    });
    await deliver();
    expect((await row()).attempts).toBe(kind === 'postgres' ? 1 : 0);
  });

  test('a failing database costs the handler no try', async () => {
    const trouble = new StoreError('The disk is full.');
    let unlock = async () => {};
    const { deliver, row } = await open(async () => {
      unlock = await lock(store.url);
      throw trouble;
    });
    await expect(deliver()).rejects.toBe(trouble);
    await unlock();
    expect(await row()).toMatchObject({ attempts: 0, error_kind: null });
  });

  test('what the returned function puts into the outbox is added with the cursor, and not afterwards', async () => {
    let kept: Outbox | undefined;
    let tries = 0;
    const { claim, deliver } = await open(async () => async (_tx, outbox) => {
      const values = { conversation_id: 'cnv_1' };
      await outbox.addConversationTags(values, { tag_ids: ['tag_1'] }, { key: 'once' });
      if (tries++ === 0) throw new Error('It is broken.');
      await outbox.addConversationTags(values, { tag_ids: ['tag_1'] }, { key: 'once' });
      kept = outbox;
    });
    await deliver();
    expect(await store.outbox.due(100)).not.toContain(claim.instanceId);
    await db.transact((tx) => tx.updateTable('consumers').set({ not_before: null }).execute());
    await deliver();
    const afterwards = kept?.markMessageSeen({ message_id: 'msg_1' }, { key: 'late' });
    await expect(afterwards).rejects.toThrow('The transaction is over.');
    const { writes } = await store.outbox.next(claim.instanceId, { limit: 9, againMs: 0 });
    expect(writes).toMatchObject([
      { key: 'once', object: '/conversations/cnv_1', body: '{"tag_ids":["tag_1"]}', is_repeatable: 1 },
    ]);
  });

  test.each<[string, string, (outbox: Outbox) => Promise<void>]>([
    [
      'without a key',
      'needs { key }',
      (all) => all.markMessageSeen({ message_id: 'a' }, {} as { key: string }),
    ],
    ['with an empty key', 'needs { key }', (all) => all.markMessageSeen({ message_id: 'a' }, { key: ' ' })],
    ['without a path value', 'needs a message_id', (all) => all.markMessageSeen({} as never, { key: 'a' })],
    ['without a body', 'needs a body', (all) => all.createLink(undefined as never, { key: 'a' })],
    [
      'with a huge body',
      'more than 1048576 characters',
      (all) => all.createLink({ external_url: 'x'.repeat(2 ** 20) } as never, { key: 'a' }),
    ],
    [
      'with one key for two requests',
      'twice, for different requests',
      async (all) => {
        await all.markMessageSeen({ message_id: 'a' }, { key: 'a' });
        await all.markMessageSeen({ message_id: 'b' }, { key: 'a' });
      },
    ],
  ])('a write %s fails the call, and says what is missing', async (_what, says, write) => {
    const { claim, deliver, row } = await open(async () => async (_tx, outbox) => write(outbox));
    await deliver();
    expect(await row()).toMatchObject({ cursor: 0, error_detail: expect.stringContaining(says) });
    expect(await store.outbox.due(100)).not.toContain(claim.instanceId);
  });

  test('a returned function that takes five seconds is rolled back and has failed', async () => {
    const written = holdTimers();
    const { deliver, row } = await open(async () => async (transaction) => {
      await (transaction as unknown as typeof db)
        .insertInto('settings')
        .values({ name: 'half', value: '1' })
        .execute();
      written.resolve(new AbortController().signal);
      await hang();
    });
    const delivered = deliver();
    await written.promise;
    await vi.advanceTimersByTimeAsync(5 * SECOND_MS);
    await delivered;
    expect(await row()).toMatchObject({
      cursor: 0,
      attempts: 1,
      error_detail: expect.stringContaining('more than 5 s'),
    });
    expect(await db.selectFrom('settings').selectAll().where('name', '=', 'half').execute()).toEqual([]);
  });
});

test('the resource decides the type of the documents', () => {
  type Change = Extract<ChangeBatch, { resource: 'contacts' }>['changes'][number];
  expectTypeOf<Extract<Change, { change: 'deleted' }>['document']>().toEqualTypeOf<null>();
  expectTypeOf<NonNullable<Change['document']>['name']>().toBeString();
});
