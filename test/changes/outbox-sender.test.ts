import { describe, expect, test } from 'vitest';
import type { CompanyEvent } from '../../src/changes/app-events.ts';
import { collectWrites, hashKey } from '../../src/changes/collect-writes.ts';
import { type SenderParts, sendWrites } from '../../src/changes/outbox-sender.ts';
import { ServiceError } from '../../src/service/errors.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import { addWrites } from '../../src/store/outbox.ts';
import { startTestClient } from '../service/test-client.ts';
import { openTestStore } from '../store/test-store.ts';
import { findFreePort } from '../support/free-port.ts';
import { installInstance } from '../support/install-instance.ts';
import { testLogger } from '../support/test-logger.ts';

/** Before a write is sent again that may have arrived. */
const REQUEST_TIMEOUT_MS = 20_000;

const TAGS = { path: '/conversations/:conversation_id/tags' };
const REPLIES = { path: '/conversations/:conversation_id/messages' };

describe('the sender of an outbox', async () => {
  const { parts, http, newCompany } = await startTestClient();
  const store = await openTestStore('sqlite');
  const { db, outbox, instances } = store;

  /** A company with conversations, installed; `tag` and `reply` write to one of them, by its number. */
  async function open(changes: Partial<SenderParts> = {}) {
    const test = await newCompany({ conversations: 9 });
    const { company, tagId } = test;
    const page = await test.client.listConversations();
    const ids = page._results.map(({ id }) => id);
    const asked = (await test.journal()).length;
    const instanceId = `ins_${company.id}`;
    await installInstance(db, { id: instanceId, name: 'Acme', company_id: company.id }, Date.now());
    const events: CompanyEvent[] = [];
    const { logger } = testLogger();
    const own = {
      ...parts,
      outbox,
      instances,
      tokens: test.tokens,
      failures: new Map<string, number>(),
      onEvent: (_id: string, event: CompanyEvent) => void events.push(event),
      ...changes,
    };
    const add = async (fill: (all: ReturnType<typeof collectWrites>['outbox']) => unknown) => {
      const collected = collectWrites(instanceId);
      await fill(collected.outbox);
      await db.transact((tx) => addWrites(db, tx, instanceId, collected.close()));
    };
    return {
      ...test,
      instanceId,
      events,
      add,
      tag: (at: number, key = `tag:${at}`) =>
        add((all) =>
          all.addConversationTags({ conversation_id: ids[at] ?? '' }, { tag_ids: [tagId] }, { key }),
        ),
      untag: (at: number) =>
        add((all) => {
          const values = { conversation_id: ids[at] ?? '' };
          return all.removeConversationTags(values, { tag_ids: [tagId] }, { key: `untag:${at}` });
        }),
      reply: (at: number, key = `reply:${at}`) =>
        add((all) => all.replyToConversation({ conversation_id: ids[at] ?? '' }, { body: 'Hello' }, { key })),
      send: (signal = new AbortController().signal) => sendWrites(own, instanceId, { logger, signal }),
      /** What the service got, and its answers. */
      got: async () => (await test.journal()).slice(asked).map(({ method, status }) => `${method} ${status}`),
      row: async (key: string) =>
        (
          await db.selectFrom('outbox').selectAll().where('key_hash', '=', hashKey(instanceId, key)).execute()
        )[0],
    };
  }

  /** Lets a write's pause be over. */
  const endPauses = () => db.transact((tx) => tx.updateTable('outbox').set({ not_before: 0 }).execute());

  test('what the service takes is done, with the id of its answer', async () => {
    const { reply, send, row, got } = await open();
    await reply(0);
    expect(await send()).toBeUndefined();
    expect(await row('reply:0')).toMatchObject({
      state: 'done',
      status: 201,
      answer_id: expect.stringMatching(/^msg_/),
    });
    expect(await got()).toEqual(['POST 201']);
  });

  test.each([
    ['a limit', { status: 429, headers: { 'retry-after': '0' } }],
    ['a token that is not good any more', { status: 401 }],
  ])('%s leads to another try, and is no error', async (_what, effect) => {
    const { reply, send, row, fault, got } = await open();
    await fault(effect, 1, REPLIES);
    await reply(0);
    await send();
    expect(await row('reply:0')).toMatchObject({ state: 'done', attempts: 2, was_sent: 0 });
    expect(await got()).toEqual([`POST ${effect.status}`, 'POST 201']);
  });

  test.each([
    ['500', { status: 500 }],
    ['no answer', { drop: 'after' }],
  ])('after %s a write that may come twice is sent again when the first has ended', async (_what, effect) => {
    const { tag, send, row, fault, events } = await open();
    await fault(effect, 1, TAGS);
    await tag(0);
    await send();
    const waiting = await row('tag:0');
    expect(waiting).toMatchObject({
      state: 'pending',
      was_sent: 1,
      error: expect.stringContaining('service'),
    });
    expect((waiting?.not_before ?? 0) - Date.now()).toBeGreaterThan(REQUEST_TIMEOUT_MS - 5_000);
    await endPauses();
    await send();
    expect(await row('tag:0')).toMatchObject({ state: 'done', attempts: 2, error: null });
    expect(events).toEqual([]);
  });

  test.each([
    ['500', { status: 500 }],
    ['no answer', { drop: 'after' }],
  ])('after %s any other write is unknown, and holds up its conversation alone', async (_what, effect) => {
    const { tag, reply, send, row, fault, events, got } = await open();
    await fault(effect, 1, REPLIES);
    await reply(0);
    await tag(0);
    await tag(1);
    await send();
    expect(await row('reply:0')).toMatchObject({ state: 'unknown', attempts: 1 });
    expect([await row('tag:0'), await row('tag:1')]).toMatchObject([{ state: 'pending' }, { state: 'done' }]);
    expect(events).toMatchObject([
      { type: 'write_unknown', operation: 'replyToConversation', key: 'reply:0' },
    ]);
    expect((await got()).length).toBe(2);
  });

  test('a write that the service refuses holds up nothing', async () => {
    const { tag, add, send, row, events } = await open();
    await add((all) => all.updateTag({ tag_id: 'tag_none' }, { name: 'x' }, { key: 'bad' }));
    await tag(0);
    await send();
    expect(await row('bad')).toMatchObject({
      state: 'refused',
      status: 404,
      error: expect.stringContaining('404'),
    });
    expect(await row('tag:0')).toMatchObject({ state: 'done' });
    expect(events).toMatchObject([{ type: 'write_refused', key: 'bad' }]);
  });

  test.each([
    [404, true, 'done'],
    [410, true, 'done'],
    [404, false, 'refused'],
  ])('a DELETE that gets %d, and may have arrived before: %s, is %s', async (status, isRepeat, state) => {
    const { untag, send, row, fault } = await open();
    if (isRepeat) await fault({ drop: 'after' }, 1, TAGS);
    await fault({ status }, 1, TAGS);
    await untag(0);
    await send();
    await endPauses();
    await send();
    expect(await row('untag:0')).toMatchObject({ state });
  });

  test('a write that could not be sent is tried again, and stays known', async () => {
    const apiUrl = `http://127.0.0.1:${await findFreePort()}`;
    const { budget } = parts;
    const clock = new ServiceClock();
    const api = new ServiceApi({ apiUrl, http, clock, budget, origins: new AllowedOrigins(apiUrl) });
    const { reply, send, row } = await open({ api });
    await reply(0);
    await send();
    const waiting = await row('reply:0');
    expect(waiting).toMatchObject({
      state: 'pending',
      was_sent: 0,
      error: expect.stringContaining('ECONNREFUSED'),
    });
    expect(waiting?.not_before).toBeGreaterThan(Date.now() - 5_000);
  });

  test('writes of one guard bucket are spread, without a refusal', async () => {
    const { tag, send, got } = await open();
    for (const key of 'abcdefg') await tag(0, key);
    while ((await send()) !== undefined);
    expect(await got()).toEqual(Array(7).fill('POST 200'));
  });

  test('without a permit the company waits for the next window', async () => {
    const { reply, send, row, company, instanceId } = await open();
    while ((await parts.budget.acquire(company.id, '/contacts')).permit !== undefined);
    await reply(0);
    expect(await send()).toBeUndefined();
    expect(await row('reply:0')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(await outbox.due(100)).not.toContain(instanceId);
  });

  test('without a good token nothing is sent', async () => {
    const tokens = {
      accessToken: () => Promise.reject(new ServiceError('reauthorize', 'Install it again.')),
    };
    const { reply, send, row, got } = await open({ tokens });
    await reply(0);
    expect(await send()).toBeUndefined();
    expect(await row('reply:0')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(await got()).toEqual([]);
  });

  test('a 401 that a new token does not cure is shown, and holds up nothing', async () => {
    const { tag, reply, send, row, fault, renewals } = await open();
    await fault({ status: 401 }, 20, TAGS);
    for (const at of [0, 1, 2]) await tag(at);
    await reply(3);
    await send();
    const rows = [await row('tag:0'), await row('tag:1'), await row('tag:2')];
    const refused = { state: 'pending', status: 401, error: expect.stringContaining('401') };
    expect(rows).toMatchObject(Array(3).fill(refused));
    expect(await row('reply:3')).toMatchObject({ state: 'done' });
    expect(renewals()).toBeLessThanOrEqual(3);
  });

  test('an outage makes few writes unknown, and ends when one is done', async () => {
    const { reply, send, row, fault, got } = await open();
    await fault({ status: 503 }, 3, REPLIES);
    for (let at = 0; at < 9; at++) await reply(at);
    await send();
    expect((await got()).slice(0, 2)).toEqual(['POST 503', 'POST 503']);
    await endPauses();
    while ((await send()) !== undefined || (await row('reply:8'))?.state === 'pending');
    const rows = await Promise.all(Array.from({ length: 9 }, (_, at) => row(`reply:${at}`)));
    expect(rows.map((one) => one?.state)).toEqual([...Array(3).fill('unknown'), ...Array(6).fill('done')]);
  });

  test('a write that does not fit its route any more is refused', async () => {
    const { tag, send, row, instanceId } = await open();
    await tag(0);
    await db.transact((tx) =>
      tx.updateTable('outbox').set({ path_values: '{}' }).where('instance_id', '=', instanceId).execute(),
    );
    await send();
    const error = expect.stringContaining('needs a conversation_id');
    expect(await row('tag:0')).toMatchObject({ state: 'refused', error });
  });

  test('a process that ends begins no more', async () => {
    const { reply, send, got } = await open();
    await reply(0);
    await send(AbortSignal.abort());
    expect(await got()).toEqual([]);
  });

  test('a write of an operation that this version does not have is refused', async () => {
    const { tag, send, row, instanceId } = await open();
    await tag(0);
    const old = db.transact((tx) =>
      tx.updateTable('outbox').set({ operation: 'sendFax' }).where('instance_id', '=', instanceId).execute(),
    );
    await old;
    await send();
    expect(await row('tag:0')).toMatchObject({ state: 'refused', error: expect.stringContaining('sendFax') });
  });
});
