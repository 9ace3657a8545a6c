import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ServiceClient } from '../../src/service/calls.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import { findFreePort } from '../support/free-port.ts';
import { failureOf, startTestClient, type TestCompany } from './test-client.ts';

const { newCompany, parts, http } = await startTestClient();

async function withTag() {
  const made = await newCompany();
  const tag_id = made.company.tags[0];
  if (tag_id === undefined) throw new Error('a company without tags');
  return { ...made, tag_id };
}

/** Statuses of what was asked for, in order. */
async function statuses({ journal }: TestCompany): Promise<number[]> {
  return (await journal()).map(({ status }) => status);
}

/** A reading, a writing that may be repeated, and one that may not. */
const CALLS: Record<string, (client: ServiceClient, tag_id: string) => Promise<unknown>> = {
  GET: (client, tag_id) => client.getTag({ tag_id }),
  PATCH: (client, tag_id) => client.updateTag({ tag_id }, { name: 'Renamed' }),
  POST: (client, tag_id) => client.createChildTag({ tag_id }, { name: 'Child' }),
};

describe.concurrent.each(Object.entries(CALLS))('%s', (method, call) => {
  test('with an access token that was rejected: once more with a new one', async () => {
    const made = await withTag();
    await made.fault({ status: 401 });
    await call(made.client, made.tag_id);
    expect(made.renewals()).toBe(1);
    expect((await statuses(made)).length).toBe(2);
  });

  test('with a new access token that is rejected too: it is not the token', async () => {
    const made = await withTag();
    const path = method === 'POST' ? '/tags/:tag_id/children' : '/tags/:tag_id';
    await made.fault({ status: 401 }, 9, { path });
    const error = await failureOf(call(made.client, made.tag_id));
    expect(error).toMatchObject({ remedy: 'wait', mayHaveTakenEffect: false });
    expect(await statuses(made)).toEqual([401, 401]);
  });

  test.each([
    ['the limit', {}],
    ['a guard', { 'x-service-tier': '2' }],
  ])('refused by %s (429): once more when the service wants it', async (_what, headers) => {
    const made = await withTag();
    await made.fault({ status: 429, headers: { 'retry-after': '0.3', ...headers } });
    const startedAt = performance.now();
    await call(made.client, made.tag_id);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(299);
    expect((await statuses(made)).length).toBe(2);
  });

  test('refused for longer than it may wait: fails at once, and says for how long', async () => {
    const made = await withTag();
    await made.fault({ status: 429, headers: { 'retry-after': '40', 'x-service-tier': '2' } });
    const startedAt = performance.now();
    expect(await failureOf(call(made.client, made.tag_id))).toMatchObject({
      remedy: 'wait',
      status: 429,
      tier: '2',
      retryAfterMs: 40_000,
    });
    // The next one knows already.
    const next = await failureOf(call(made.client, made.tag_id));
    expect(next.retryAfterMs).toBeGreaterThan(38_000);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await statuses(made)).toEqual([429]);
  });

  test('refused for good (404): not again', async () => {
    const made = await withTag();
    expect(await failureOf(call(made.client, 'tag_none'))).toMatchObject({ remedy: 'give_up', status: 404 });
    expect(await statuses(made)).toEqual([404]);
  });

  test.each([
    ['an answer of 503', { status: 503, headers: { 'retry-after': '0.1' } }],
    ['a connection that breaks', { drop: 'before' }],
    ['an answer that is lost', { drop: 'after' }],
    ['an answer that is cut short', { truncate: 20 }],
    ['an answer that is no JSON', { status: 200, body: '<h1>hello</h1>' }],
  ])(
    `that meets %s: ${method === 'POST' ? 'not again, as it may have taken effect' : 'once more'}`,
    async (_what, fault) => {
      const made = await withTag();
      await made.fault(fault);
      if (method === 'POST') {
        const error = await failureOf(call(made.client, made.tag_id));
        expect(error).toMatchObject({ remedy: 'wait', mayHaveTakenEffect: true });
        expect(error.message).toContain('may have taken effect');
      } else {
        await call(made.client, made.tag_id);
      }
      expect((await statuses(made)).length).toBe(method === 'POST' ? 1 : 2);
    },
  );

  test('to a service that nobody answers at: a few times, and it surely has no effect', async () => {
    const made = await withTag();
    const apiUrl = `http://127.0.0.1:${await findFreePort()}/api`;
    const facts = { apiUrl, http, budget: parts.budget, clock: new ServiceClock() };
    const away = made.newClient({
      api: new ServiceApi({ ...facts, origins: new AllowedOrigins(apiUrl) }),
    });
    const error = await failureOf(call(away, made.tag_id));
    expect(error).toMatchObject({ remedy: 'wait', unsent: true, mayHaveTakenEffect: false });
    expect(error.message).toContain('ECONNREFUSED');
    // What never came to the service has used up nothing.
    await call(made.client, made.tag_id);
    expect((await made.journal()).map(({ remaining }) => remaining)).toEqual([119]);
  });

  test('that its caller ends: the reason of the signal, in whatever it is', async () => {
    const made = await withTag();
    const reason = new Error('enough');
    await made.fault({ delay_ms: 20_000 });
    const asking = new AbortController();
    const asked = call(made.newClient({ signal: asking.signal }), made.tag_id);
    setTimeout(() => asking.abort(reason), 100);
    await expect(asked).rejects.toBe(reason);

    await made.fault({ status: 429, headers: { 'retry-after': '20' } });
    const waiting = new AbortController();
    const waited = call(made.newClient({ signal: waiting.signal }), made.tag_id);
    setTimeout(() => waiting.abort(reason), 300);
    await expect(waited).rejects.toBe(reason);

    const sent = (await made.journal()).length;
    await expect(call(made.newClient({ signal: waiting.signal }), made.tag_id)).rejects.toBe(reason);
    expect((await made.journal()).length).toBe(sent);
  });
});

test('a POST that is said to be repeatable is sent again like any other', async () => {
  const made = await withTag();
  await made.fault({ drop: 'after' });
  await made.client.createChildTag({ tag_id: made.tag_id }, { name: 'Twice' }, { repeatable: true });
  const children = await made.client.listChildTags({ tag_id: made.tag_id });
  expect(children._results.map(({ name }) => name)).toEqual(['Twice', 'Twice']);
});

test('whatever ends a writing that got no answer, the error says that it may have taken effect', async () => {
  const made = await withTag();
  const { client, fault, tag_id } = made;
  const [conversation] = (await client.listConversations({ limit: 1 }))._results;
  const remove = () =>
    client.removeConversationTags({ conversation_id: conversation?.id ?? '' }, { tag_ids: [tag_id] });
  await fault({ drop: 'after' });
  await fault({ status: 404 });
  expect(await failureOf(remove())).toMatchObject({
    remedy: 'give_up',
    status: 404,
    mayHaveTakenEffect: true,
  });
  await fault({ status: 503 });
  await fault({ status: 429, headers: { 'retry-after': '60', 'x-service-tier': '2' } });
  expect(await failureOf(remove())).toMatchObject({
    status: 429,
    tier: '2',
    retryAfterMs: 60_000,
    mayHaveTakenEffect: true,
  });
});

test('trouble that does not pass is given up on after four tries', async () => {
  const made = await withTag();
  await made.fault({ status: 500 }, 20);
  expect(await failureOf(made.client.getTag({ tag_id: made.tag_id }))).toMatchObject({
    remedy: 'wait',
    status: 500,
    mayHaveTakenEffect: false,
  });
  expect(await statuses(made)).toEqual([500, 500, 500, 500]);
});

test('a call may bring its own signal and its own patience', async () => {
  const made = await withTag();
  await made.fault({ status: 429, headers: { 'retry-after': '0.5' } }, 9);
  const { client, tag_id } = made;
  const error = await failureOf(client.getTag({ tag_id }, { maxWaitMs: 100 }));
  expect(error).toMatchObject({ status: 429, retryAfterMs: 500 });
  const reason = new Error('enough');
  await expect(client.getTag({ tag_id }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect((await made.journal()).length).toBe(1);
});

test('a call whose purpose is over while it waits is not sent again', async () => {
  const { newClient, fault, journal, company } = await newCompany();
  await fault({ status: 429, headers: { 'retry-after': '0.3' } });
  const asked: number[] = [];
  const client = newClient({
    isWanted: async () => {
      asked.push((await journal()).length);
      return asked.length === 1;
    },
  });
  const [tag_id = ''] = company.tags;
  expect(await failureOf(client.getTag({ tag_id }))).toMatchObject({ remedy: 'give_up' });
  expect(asked).toEqual([0, 1]);
  expect((await journal()).length).toBe(1);
});

test('a permit that is too old by now is not used: nothing is sent, and another one is asked for', async () => {
  const { company, journal } = await newCompany();
  const { permit } = await parts.budget.acquire(company.id, '/tags');
  if (permit === undefined) return expect.unreachable();
  const request = { method: 'GET', url: new URL(`${parts.api.apiUrl}/tags`) } as const;
  const sending = parts.api.send(request, { ...permit, goodUntil: performance.now() - 1 }, 'token');
  expect(await failureOf(sending)).toMatchObject({ remedy: 'wait', unsent: true });
  expect(await journal()).toEqual([]);
});

/** Three that fail, begun at once; each of them is a way of asking. */
const AT_ONCE: Record<string, (client: ServiceClient) => Promise<unknown>[]> = {
  'answers of calls': (client) => ['tag_a', 'tag_b', 'tag_c'].map((tag_id) => client.getTag({ tag_id })),
  'first pages': (client) =>
    ['tag_a', 'tag_b', 'tag_c'].map((tag_id) => client.pages.listChildTags({ tag_id }).next()),
  'first items': (client) =>
    ['tag_a', 'tag_b', 'tag_c'].map((tag_id) => client.each.listChildTags({ tag_id }).next()),
};

test.each(Object.entries(AT_ONCE))(
  '%s that nobody awaits any more end no process; who awaits them gets their failures',
  async (_what, ask) => {
    const { newClient } = await newCompany();
    const requests: Promise<unknown>[] = [];
    const client = newClient({
      around: (request) => {
        const answer = request();
        requests.push(answer);
        return answer;
      },
    });
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    try {
      const [first, ...others] = ask(client);
      expect(await failureOf(first as Promise<unknown>)).toMatchObject({ remedy: 'give_up', status: 404 });
      // All of them have their answers, which nobody has asked for yet.
      const answers = await Promise.allSettled(requests);
      expect(answers.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
      // By the next turns Node has told of what nobody handles.
      for (let turns = 0; turns < 3; turns++) await turn();
      expect(unhandled).toEqual([]);
      for (const other of others) expect(await failureOf(other)).toMatchObject({ status: 404 });
    } finally {
      process.off('unhandledRejection', note);
    }
  },
);
