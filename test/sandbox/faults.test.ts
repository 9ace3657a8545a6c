import { describe, expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import type { Fault, FaultMatch } from '../../src/sandbox/types.ts';
import { at, startCompany } from './support/test-sandbox.ts';

async function start() {
  const parts = await startCompany({ plan: 'enterprise', contacts: 40 });
  const { faults } = parts.service.sandbox;
  const order = (fault: object, match: FaultMatch = {}, times = 1) => faults.order({ match, fault, times });
  return { ...parts, faults, order, tag: `/tags/${at(parts.company.tags, 0)}` };
}

const messageOf = (error: Error) => error.message;

/** Status and body as the client gets them, or where the connection broke. */
function outcome(request: Promise<Response>): Promise<string> {
  const read = async (answer: Response) => `${answer.status} ${await answer.text().catch(messageOf)}`;
  return request.then(read, messageOf);
}

describe('Which requests meet a fault', () => {
  test('Method, path, company and application must match; a pattern means a route', async () => {
    const { service, company, token, tag, order, faults } = await start();
    const other = at(service.company().api_tokens, 0).token;
    const application = service.application();
    const partner = service.install(company, application);
    const requests: Record<string, () => Promise<{ status: number }>> = {
      contacts: () => service.api('/contacts', token),
      contact: () => service.api('/contacts/x', token),
      patch: () => service.call('PATCH', tag, token, {}),
      search: () => service.api('/conversations/search/tags', token),
      partner: () => service.api('/me', partner.access_token),
      refresh: () => service.refresh(partner.refresh_token, application),
      other: () => service.api('/contacts', other),
    };
    const own = 'contacts contact patch search partner refresh';
    for (const [match, expected] of [
      [{}, `${own} other`],
      [{ method: 'patch' }, 'patch'],
      [{ path: '/contacts' }, 'contacts other'],
      [{ path: '/contacts/:contact_id' }, 'contact'],
      [{ path: '/conversations/:conversation_id/tags' }, ''],
      [{ path: tag }, 'patch'],
      [{ path: '/tags/other' }, ''],
      [{ path: '/oauth/token' }, 'refresh'],
      [{ company_id: company.id }, own],
      [{ client_id: application.client_id }, 'partner refresh'],
      [{ path: '/contacts', company_id: company.id, method: 'GET' }, 'contacts'],
    ] as const) {
      order({ status: 599 }, match, 99);
      const met: string[] = [];
      for (const [name, send] of Object.entries(requests)) if ((await send()).status === 599) met.push(name);
      expect([match, met.join(' ')]).toEqual([match, expected]);
      faults.clear();
    }
  });

  test('nth counts matching requests from now; the list and the journal tell which it was', async () => {
    const { service, token, order, faults } = await start();
    await service.statuses(1, '/contacts', token);
    const spent = order({ status: 500 }, {}, 2);
    order({ status: 502 }, { path: '/contacts', nth: 2 }, 2);
    order({ status: 503 }, { nth: 6 });
    expect(await service.statuses(2, '/contacts', token)).toEqual([500, 500]);
    expect(await service.statuses(1, '/me', token)).toEqual([200]);
    const waiting = order({ status: 504 }, { nth: 9 }, 4);
    expect(await service.statuses(4, '/contacts', token)).toEqual([502, 502, 503, 200]);
    const none = { used: 0, left: 0, to_pass: 0 };
    expect([faults.list().at(0), faults.list().at(-1)]).toEqual([
      { id: spent, match: {}, fault: { status: 500 }, times: 2, ...none, used: 2 },
      { id: waiting, match: { nth: 9 }, fault: { status: 504 }, times: 4, ...none, left: 4, to_pass: 4 },
    ]);
    const met = service.journal(1).map(({ fault }) => fault);
    expect(met.slice(0, 3)).toEqual([spent, spent, null]);
    faults.remove(spent);
    expect(() => faults.remove(spent)).toThrow(expect.objectContaining({ status: 404 }));
    expect(faults.list()).toHaveLength(3);
  });
});

describe('What a fault does', () => {
  test('It replaces, changes or cuts off an answer; all but drop before counts', async () => {
    const { service, token, order } = await start();
    const whole = await (await service.api('/me', token)).text();
    const error =
      '500 {"_error":{"status":500,"title":"Internal Server Error","message":"This fault was ordered."}}';
    const drip = { bytes: 5, every_ms: 1 };
    for (const [fault, expected, counted] of [
      [{ status: 500 }, error, 1],
      [{ status: 503, body: { oh: 'no' } }, '503 {"oh":"no"}', 1],
      [{ body: '{"_results":[' }, '200 {"_results":[', 1],
      [{ truncate: 20 }, `200 ${whole.slice(0, 20)}`, 1],
      [{ truncate: 20, drop: 'after' }, '200 terminated', 1],
      [{ drip }, `200 ${whole}`, 1],
      [{ drip, drop: 'after', truncate: 12 }, '200 terminated', 1],
      [{ drop: 'after' }, 'fetch failed', 1],
      [{ drop: 'before' }, 'fetch failed', 0],
    ] as const satisfies [Fault, string, number][]) {
      service.advance(60_000);
      order(fault);
      expect([fault, await outcome(service.api('/me', token))]).toEqual([fault, expected]);
      const { headers } = await service.api('/me', token);
      expect([fault, headers.get(HEADER.remaining)]).toEqual([fault, String(199 - counted)]);
    }
  });

  test('headers are added, or wrong ones, also of the five; null leaves one out', async () => {
    const { service, token, order } = await start();
    const headers = { 'X-RateLimit-Remaining': 'many', 'x-ratelimit-limit': null, date: 'yesterday' };
    order({ body: '<h1>', headers: { ...headers, 'Retry-After': 7, 'content-type': 'text/html' } });
    const answer = await service.api('/me', token);
    const names = [HEADER.remaining, HEADER.limit, HEADER.retryAfter, 'date', 'content-type'];
    const values = names.map((name) => answer.headers.get(name));
    expect([answer.status, ...values]).toEqual([200, 'many', null, '7', 'yesterday', 'text/html']);
  });

  test('delay_ms holds the answer back; drip sends its body in pieces, in real time', async () => {
    const { service, token, order } = await start();
    order({ delay_ms: 100, drip: { bytes: 20, every_ms: 30 } });
    const startedAt = performance.now();
    const { body } = await service.api('/me', token);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
    let pieces = 0;
    for await (const _ of body ?? []) pieces += 1;
    expect(pieces).toBeGreaterThan(1);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95 + 3 * 29);
  });

  test('A lost answer took effect; an error in place of one left everything as it was', async () => {
    const { service, company, order } = await start();
    const code = service.code(company);
    const outcomes: unknown[] = [];
    for (const fault of [{ status: 500 }, { drop: 'after' }, { delay_ms: 1 }]) {
      order(fault, { path: '/oauth/token' });
      outcomes.push(await service.exchange(code).then(({ status }) => status, messageOf));
    }
    expect(outcomes).toEqual([500, 'fetch failed', 400]);
  });

  test('revoke serves the request, and then voids its access token or all of its grant', async () => {
    const { service, company, token, order } = await start();
    const other = service.install(company);
    for (const [revoke, refreshed] of [
      ['access_token', 200],
      ['grant', 400],
    ] as const) {
      const mine = service.install(company);
      order({ revoke });
      expect(await service.statuses(2, '/me', mine.access_token), revoke).toEqual([200, 401]);
      expect((await service.refresh(mine.refresh_token)).status, revoke).toBe(refreshed);
      order({ revoke });
      expect(await service.statuses(2, '/me', token), 'an API token is no grant').toEqual([200, 200]);
    }
    expect(await service.statuses(1, '/me', other.access_token)).toEqual([200]);
  });

  test('records: after the answer, an error too, the company’s list changes', async () => {
    const { service, token, order } = await start();
    const ids = async () => {
      const answer = await service.call<{ _results?: { id: string }[] }>('GET', '/contacts?limit=100', token);
      return (answer.body._results ?? []).map(({ id }) => id);
    };
    const before = await ids();
    order({ records: { resource: 'contacts', create: 2, delete: 10 } });
    expect(await ids(), 'the page that met the fault').toEqual(before);
    const after = await ids();
    expect(before.filter((id) => !after.includes(id))).toHaveLength(10);
    expect(after.filter((id) => !before.includes(id))).toHaveLength(2);
    order({ status: 503, records: { resource: 'contacts', delete: 5 } });
    expect([(await ids()).length, (await ids()).length]).toEqual([0, 27]);
  });
});
