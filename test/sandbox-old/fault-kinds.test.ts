import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { at, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';

async function ready(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company(spec);
  return { service, company, token: at(company.api_tokens, 0).token };
}

function order(service: TestSandbox, fault: object, rest: object = {}) {
  return service.done<{ id: string }>('faults', { fault, ...rest });
}

/** Sends a request, without waiting for its answer. */
function ask(url: string, token: string): Socket {
  const { hostname, port, host, pathname } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  return socket;
}

/** The pieces of an answer as they come in, and when, in milliseconds. */
async function pieces(url: string, token: string): Promise<{ text: string; at: number }[]> {
  const startedAt = performance.now();
  const got: { text: string; at: number }[] = [];
  for await (const text of ask(url, token)) got.push({ text, at: performance.now() - startedAt });
  return got;
}

test('headers may be wrong ones, also of the five, and null leaves one out', async () => {
  const { service, token } = await ready();
  await order(service, {
    headers: { 'X-RateLimit-Remaining': 'many', 'x-ratelimit-limit': null, date: 'yesterday' },
  });
  const { headers, status } = await service.api('/me', token);
  expect(status).toBe(200);
  expect([headers.get(HEADER.remaining), headers.get(HEADER.limit), headers.get('date')]).toEqual([
    'many',
    null,
    'yesterday',
  ]);
  expect(headers.get(HEADER.burstLimit)).toBe('25');
});

test('a body that is no JSON goes out in place of a good answer', async () => {
  const { service, token } = await ready();
  await order(service, { body: '{"_results":[{"id":' });
  const response = await service.api('/contacts', token);
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  await expect(response.json()).rejects.toThrow(SyntaxError);
});

test('drip sends the head at once, and the body in small pieces', async () => {
  const { service, token } = await ready();
  const whole = await (await service.api('/me', token)).text();
  await order(service, { drip: { bytes: Math.ceil(whole.length / 4), every_ms: 40 } });
  const got = await pieces(`${service.sandbox.apiUrl}/me`, token);
  const text = got.map((piece) => piece.text).join('');
  expect(text.split('\r\n\r\n')[1]).toBe(whole);
  expect(at(got, 0).text).not.toContain('{');
  expect(got.length).toBeGreaterThanOrEqual(4);
  expect(at(got, got.length - 1).at).toBeGreaterThanOrEqual(4 * 39);
});

test('drip with drop after breaks off in the middle', async () => {
  const { service, token } = await ready();
  await order(service, { drip: { bytes: 5, every_ms: 1 }, drop: 'after', truncate: 12 });
  const response = await service.api('/me', token);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow('terminated');
});

test('a client that goes away ends the drip', async () => {
  const { service, token } = await ready();
  await order(service, { drip: { bytes: 1, every_ms: 20 } });
  const socket = ask(`${service.sandbox.apiUrl}/contacts`, token);
  await once(socket, 'data');
  expect(await service.journal()).toEqual([]);
  socket.destroy();
  while ((await service.journal()).length === 0);
  expect(at(await service.journal(), 0)).toMatchObject({ path: '/contacts', status: 200 });
});

test('revoke access_token: the answer is still well, the token opens nothing more, the refresh token does', async () => {
  const { service, company } = await ready();
  const tokens = await service.install(company);
  const other = await service.install(company);
  await order(service, { revoke: 'access_token' });
  expect((await service.api('/me', tokens.access_token)).status).toBe(200);
  const refused = await service.call<{ _error: object }>('GET', '/me', tokens.access_token);
  expect([refused.status, refused.body._error]).toMatchObject([
    401,
    { message: 'The access token was revoked.' },
  ]);
  expect((await service.api('/me', other.access_token)).status).toBe(200);
  const renewed = (await (await service.refresh(tokens.refresh_token)).json()) as typeof tokens;
  expect((await service.api('/me', renewed.access_token)).status).toBe(200);
});

test('revoke grant: neither of its tokens opens anything more; those of another authorization do', async () => {
  const { service, company } = await ready();
  const tokens = await service.install(company);
  const other = await service.install(company);
  await order(service, { revoke: 'grant' });
  expect((await service.api('/me', tokens.access_token)).status).toBe(200);
  expect((await service.api('/me', tokens.access_token)).status).toBe(401);
  const refused = await service.refresh(tokens.refresh_token);
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: 'invalid_grant' }]);
  expect((await service.api('/me', other.access_token)).status).toBe(200);
  expect((await service.state()).tokens).toHaveLength(2);
});

test('revoke grant at the token route ends what the request was about', async () => {
  const { service, company } = await ready();
  await order(service, { revoke: 'grant' }, { match: { path: '/oauth/token' } });
  const { access_token, refresh_token } = await service.install(company);
  expect((await service.api('/me', access_token)).status).toBe(401);
  expect((await service.refresh(refresh_token)).status).toBe(400);
});

test('an API token is no grant: it is not revoked', async () => {
  const { service, token } = await ready();
  await order(service, { revoke: 'grant' });
  expect(await service.statuses(2, '/me', token)).toEqual([200, 200]);
});

test('an answer that is lost after the request took effect: the record is changed', async () => {
  const { service, company, token } = await ready();
  const tag = `/tags/${at(company.tags, 0)}`;
  await order(service, { drop: 'after' }, { match: { method: 'PATCH', path: '/tags/:tag_id' } });
  await expect(service.call('PATCH', tag, token, { name: 'changed' })).rejects.toThrow('fetch failed');
  expect((await service.call('GET', tag, token)).body).toMatchObject({ name: 'changed' });
});

test('records change once the page is sent: the page is as it was, and the ones after it are not', async () => {
  const { service, company, token } = await ready({ contacts: 40 });
  const other = await service.company({ contacts: 40 });
  const ids = async (path: string, who = token) => {
    const { body } = await service.call<{ _results: { id: string }[] }>('GET', path, who);
    return body._results.map(({ id }) => id);
  };
  const before = await ids('/contacts?limit=100');
  await order(
    service,
    { records: { resource: 'contacts', create: 2, delete: 10 } },
    { match: { path: '/contacts' } },
  );
  expect(await ids('/contacts?limit=100'), 'the page that met the fault').toEqual(before);
  const after = await ids('/contacts?limit=100');
  expect(before.filter((id) => !after.includes(id))).toHaveLength(10);
  expect(after.filter((id) => !before.includes(id))).toHaveLength(2);
  const { companies } = await service.state();
  const count = (one: string) => companies.find(({ id }) => id === one)?.counts.contacts;
  expect([count(company.id), count(other.id)]).toEqual([32, 40]);
});

test('a list that is reordered while someone pages ends, though not with the same records', async () => {
  const { service, token } = await ready();
  interface List {
    _pagination: { next: string | null };
    _results: { id: string }[];
  }
  await order(
    service,
    { records: { resource: 'contacts', reorder: true } },
    { match: { path: '/contacts', nth: 2 } },
  );
  const seen: string[] = [];
  let pages = 0;
  for (let next: string | null = '/contacts?limit=25'; next !== null; pages++) {
    const { body }: { body: List } = await service.call<List>('GET', next, token);
    seen.push(...body._results.map(({ id }) => id));
    next = body._pagination.next;
  }
  expect([pages, seen.length]).toEqual([4, 100]);
  expect(new Set(seen).size, 'different ones').toBeLessThan(100);
});

test('records change also when the answer is an error', async () => {
  const { service, company, token } = await ready();
  await order(service, { status: 503, records: { resource: 'conversations', delete: 5 } });
  expect(await service.statuses(1, '/conversations', token)).toEqual([503]);
  const { companies } = await service.state();
  const after = companies.find(({ id }) => id === company.id)?.counts.conversations;
  expect(after).toBe(company.counts.conversations - 5);
});

test.each([
  { fault: { records: { resource: 'tags', delete: 1 } } },
  { fault: { records: { resource: 'contacts' } } },
  { fault: { records: { resource: 'contacts', delete: 1 }, drop: 'before' } },
  { fault: { drip: { bytes: 0, every_ms: 5 } } },
  { fault: { drip: { bytes: 5 } } },
  { fault: { revoke: 'everything' } },
  { fault: { revoke: 'grant', drop: 'before' } },
  { fault: { headers: { 'content-length': null } } },
])('refuses %j', async (body) => {
  const service = await startFrozen();
  expect((await service.control('faults', body)).status).toBe(400);
});
