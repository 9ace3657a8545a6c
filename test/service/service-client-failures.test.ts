import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ServiceClient } from '../../src/service/calls.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import { findFreePort } from '../support/free-port.ts';
import { failureOf } from './failure-of.ts';
import { startTestClient, type TestCompany } from './test-client.ts';

const { newCompany, parts, http } = await startTestClient();

/** The statuses of a company's requests, in order. */
async function statuses({ journal }: TestCompany): Promise<number[]> {
  return (await journal()).map(({ status }) => status);
}

/** A call that reads, one that may be repeated, and one that may not. */
const CALLS: Record<string, (client: ServiceClient, tag_id: string) => Promise<unknown>> = {
  GET: (client, tag_id) => client.getTag({ tag_id }),
  PATCH: (client, tag_id) => client.updateTag({ tag_id }, { name: 'Renamed' }),
  POST: (client, tag_id) => client.createChildTag({ tag_id }, { name: 'Child' }),
};

describe.concurrent.each(Object.entries(CALLS))('a %s', (method, call) => {
  test('is sent once more with a new token after a 401', async () => {
    const made = await newCompany();
    await made.fault({ status: 401 });
    await call(made.client, made.tagId);
    expect(made.renewals()).toBe(1);
    expect((await statuses(made)).length).toBe(2);
  });

  test('fails if the new token is rejected, too', async () => {
    const made = await newCompany();
    await made.fault({ status: 401 }, 9, {
      path: method === 'POST' ? '/tags/:tag_id/children' : '/tags/:tag_id',
    });
    expect(await failureOf(call(made.client, made.tagId))).toMatchObject({ remedy: 'wait' });
    expect(await statuses(made)).toEqual([401, 401]);
  });

  test.each([
    ['the limit', {}],
    ['a guard', { 'x-service-tier': '2' }],
  ])('that %s refuses is sent again when the service wants it', async (_what, headers) => {
    const made = await newCompany();
    await made.fault({ status: 429, headers: { 'retry-after': '0.3', ...headers } });
    const startedAt = performance.now();
    await call(made.client, made.tagId);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(299);
    expect((await statuses(made)).length).toBe(2);
  });

  test('that is refused for too long fails at once, and so does the next one', async () => {
    const made = await newCompany();
    await made.fault({ status: 429, headers: { 'retry-after': '40', 'x-service-tier': '2' } });
    const failure = { remedy: 'wait', status: 429, retryAfterMs: 40_000 };
    expect(await failureOf(call(made.client, made.tagId))).toMatchObject(failure);
    const { retryAfterMs } = await failureOf(call(made.client, made.tagId));
    expect(retryAfterMs).toBeGreaterThan(30_000);
    expect(await statuses(made)).toEqual([429]);
  });

  test('that is refused for good is not sent again', async () => {
    const made = await newCompany();
    expect(await failureOf(call(made.client, 'tag_none'))).toMatchObject({ remedy: 'give_up', status: 404 });
    expect(await statuses(made)).toEqual([404]);
  });

  test.each([
    ['a 503', { status: 503, headers: { 'retry-after': '0.1' } }],
    ['a broken connection', { drop: 'before' }],
    ['a lost answer', { drop: 'after' }],
    ['a cut answer', { truncate: 20 }],
    ['an answer that is no JSON', { status: 200, body: '<h1>hello</h1>' }],
  ])('is sent again after %s, unless it is a POST', async (_what, fault) => {
    const made = await newCompany();
    await made.fault(fault);
    if (method === 'POST') {
      const error = await failureOf(call(made.client, made.tagId));
      expect(error).toMatchObject({ remedy: 'wait', unsent: false });
      expect(error.message).toContain('may have taken effect');
    } else {
      await call(made.client, made.tagId);
    }
    expect((await statuses(made)).length).toBe(method === 'POST' ? 1 : 2);
  });

  test('that does not reach the service is sent again, and uses no permit', async () => {
    const made = await newCompany();
    const apiUrl = `http://127.0.0.1:${await findFreePort()}/api`;
    const origins = new AllowedOrigins(apiUrl);
    const api = new ServiceApi({ apiUrl, http, budget: parts.budget, clock: new ServiceClock(), origins });
    const error = await failureOf(call(made.newClient({ api }), made.tagId));
    expect(error).toMatchObject({ remedy: 'wait', unsent: true });
    expect(error.message).toMatch(/ECONNREFUSED\)\.$/);
    await call(made.client, made.tagId);
    expect((await made.journal()).map(({ remaining }) => remaining)).toEqual([119]);
  });

  test.each([
    ['its request', { delay_ms: 20_000 }],
    ['its wait', { status: 429, headers: { 'retry-after': '20' } }],
  ])('rejects with the reason of a signal that ends %s', async (_what, fault) => {
    const made = await newCompany();
    const reason = new Error('enough');
    await made.fault(fault);
    const stop = new AbortController();
    const asked = call(made.newClient({ signal: stop.signal }), made.tagId);
    setTimeout(() => stop.abort(reason), 200);
    await expect(asked).rejects.toBe(reason);
    const sent = await statuses(made);
    await expect(call(made.newClient({ signal: stop.signal }), made.tagId)).rejects.toBe(reason);
    expect(await statuses(made)).toEqual(sent);
  });
});

test('a POST that is repeatable is sent again', async () => {
  const made = await newCompany();
  await made.fault({ drop: 'after' });
  await made.client.createChildTag({ tag_id: made.tagId }, { name: 'Twice' }, { repeatable: true });
  const children = await made.client.listChildTags({ tag_id: made.tagId });
  expect(children._results.map(({ name }) => name)).toEqual(['Twice', 'Twice']);
});

test('a call fails after four tries', async () => {
  const made = await newCompany();
  await made.fault({ status: 500 }, 20);
  const error = await failureOf(made.client.getTag({ tag_id: made.tagId }));
  expect(error).toMatchObject({ remedy: 'wait', status: 500 });
  expect(await statuses(made)).toEqual([500, 500, 500, 500]);
});

test('a call may bring its own signal and its own longest wait', async () => {
  const { client, tagId, ...made } = await newCompany();
  await made.fault({ status: 429, headers: { 'retry-after': '0.5' } }, 9);
  const error = await failureOf(client.getTag({ tag_id: tagId }, { maxWaitMs: 100 }));
  expect(error).toMatchObject({ status: 429, retryAfterMs: 500 });
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(client.getTag({ tag_id: tagId }, { signal })).rejects.toBe(signal.reason);
  expect((await made.journal()).length).toBe(1);
});

test('a call that nobody needs any more is not sent again', async () => {
  const { newClient, fault, journal, tagId } = await newCompany();
  await fault({ status: 429, headers: { 'retry-after': '0.3' } });
  const sent: number[] = [];
  const client = newClient({
    isWanted: async () => {
      sent.push((await journal()).length);
      return sent.length === 1;
    },
  });
  expect(await failureOf(client.getTag({ tag_id: tagId }))).toMatchObject({ remedy: 'give_up' });
  expect(sent).toEqual([0, 1]);
  expect((await journal()).length).toBe(1);
});

test('nothing is sent under a permit that is too old', async () => {
  const { company, journal } = await newCompany();
  const { permit } = await parts.budget.acquire(company.id, '/tags');
  if (permit === undefined) return expect.unreachable();
  const request = { method: 'GET', url: new URL(`${parts.api.apiUrl}/tags`) } as const;
  const sending = parts.api.send(request, { ...permit, goodUntil: performance.now() - 1 }, 'token');
  expect(await failureOf(sending)).toMatchObject({ remedy: 'wait', unsent: true });
  expect(await journal()).toEqual([]);
});

test('calls that fail while nobody awaits them do not end the process', async () => {
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
    const [first, second] = ['tag_a', 'tag_b'].map((tag_id) => client.getTag({ tag_id }));
    expect(await failureOf(first as Promise<unknown>)).toMatchObject({ status: 404 });
    await Promise.allSettled(requests);
    // Node reports an unhandled rejection within the next turns.
    for (let turns = 0; turns < 3; turns++) await turn();
    expect(unhandled).toEqual([]);
    expect(await failureOf(second as Promise<unknown>)).toMatchObject({ status: 404 });
  } finally {
    process.off('unhandledRejection', note);
  }
});
