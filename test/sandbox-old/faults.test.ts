import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { at, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';

async function ready() {
  const service = await startFrozen();
  const company = await service.company();
  return { service, company, token: at(company.api_tokens, 0).token };
}

function order(service: TestSandbox, fault: object, match: object = {}, times?: number) {
  return service.done<{ id: string }>('faults', { match, fault, ...(times === undefined ? {} : { times }) });
}

function failure(request: Promise<Response>): Promise<string> {
  return request.then(
    (response) => `answered ${response.status}`,
    (error: Error) => error.message,
  );
}

test('the next matching request gets the status, body and headers; the one after is well', async () => {
  const { service, token } = await ready();
  const { id } = await order(service, { status: 503, body: { oh: 'no' }, headers: { 'Retry-After': 7 } });
  expect(id).toMatch(/./);
  const broken = await service.api('/me', token);
  expect([broken.status, await broken.json(), broken.headers.get('retry-after')]).toEqual([
    503,
    { oh: 'no' },
    '7',
  ]);
  expect(broken.headers.get(HEADER.remaining)).toBe('49');
  const well = await service.api('/me', token);
  expect([well.status, well.headers.get(HEADER.remaining)]).toEqual([200, '48']);
});

test('a status alone answers an _error; a string body goes out as it is', async () => {
  const { service, token } = await ready();
  await order(service, { status: 500 });
  expect((await (await service.api('/me', token)).json()) as ErrorBody).toMatchObject({
    _error: { status: 500, title: 'Internal Server Error' },
  });
  await order(service, { status: 502, body: '<h1>Bad</h1>', headers: { 'content-type': 'text/html' } });
  const response = await service.api('/me', token);
  expect([await response.text(), response.headers.get('content-type')]).toEqual([
    '<h1>Bad</h1>',
    'text/html',
  ]);
});

test('times counts matching requests only; method, path and company must match', async () => {
  const { service, company, token } = await ready();
  const other = await service.company();
  await order(
    service,
    { status: 500 },
    { method: 'get', path: '/contacts/:contact_id', company_id: company.id },
    2,
  );
  const statuses = async (path: string, who = token) => (await service.api(path, who)).status;
  expect(await statuses('/contacts')).toBe(200);
  expect(await statuses('/contacts/x', at(other.api_tokens, 0).token)).toBe(404);
  expect((await service.api('/contacts/x', token, { method: 'DELETE' })).status).toBe(405);
  expect([await statuses('/contacts/x'), await statuses('/contacts/y')]).toEqual([500, 500]);
  expect(await statuses('/contacts/x')).toBe(404);
});

test('nth begins with the so-many-th matching request from now, and times counts from there', async () => {
  const { service, token } = await ready();
  await service.api('/contacts', token);
  await order(service, { status: 503 }, { path: '/contacts', nth: 3 }, 2);
  expect(await service.statuses(1, '/me', token)).toEqual([200]);
  expect(await service.statuses(5, '/contacts', token)).toEqual([200, 200, 503, 503, 200]);
});

test('a request counts for every fault that waits for its turn, also one that meets another fault', async () => {
  const { service, token } = await ready();
  await order(service, { status: 500 }, {}, 2);
  await order(service, { status: 502 }, { nth: 2 }, 1);
  await order(service, { status: 503 }, { nth: 4 }, 1);
  expect(await service.statuses(5, '/me', token)).toEqual([500, 500, 502, 503, 200]);
});

test('a fault is for one application: others and API tokens go well', async () => {
  const { service, company, token } = await ready();
  const application = await service.application();
  const [mine, others] = [await service.install(company), await service.install(company, application)];
  await order(service, { status: 503 }, { client_id: application.client_id }, 9);
  expect(await service.statuses(1, '/me', token)).toEqual([200]);
  expect(await service.statuses(1, '/me', mine.access_token)).toEqual([200]);
  expect(await service.statuses(1, '/me', others.access_token)).toEqual([503]);
  expect((await service.refresh(others.refresh_token, application)).status).toBe(503);
});

test('a pattern means a route: neither the list above it, nor a search that it would fit', async () => {
  const { service, token } = await ready();
  await order(service, { status: 503 }, { path: '/contacts/:contact_id' });
  await order(service, { status: 502 }, { path: '/conversations/:conversation_id/tags' });
  expect(await service.statuses(1, '/contacts', token)).toEqual([200]);
  expect(await service.statuses(1, '/conversations/search/tags', token)).not.toEqual([502]);
  expect(await service.statuses(1, '/contacts/x', token)).toEqual([503]);
  const tags = await service.call('POST', '/conversations/cnv_x/tags', token, { tag_ids: [] });
  expect(tags.status).toBe(502);
});

test('a literal path is one record alone', async () => {
  const { service, company, token } = await ready();
  const [one, other] = [at(company.tags, 0), at(company.tags, 1)];
  await order(service, { status: 503 }, { path: `/tags/${one}` }, 9);
  expect(await service.statuses(1, `/tags/${other}`, token)).toEqual([200]);
  expect(await service.statuses(1, `/tags/${one}`, token)).toEqual([503]);
});

test('the list tells what is ordered, how often it was used and what is left; the journal which one it was', async () => {
  const { service, token } = await ready();
  const list = async () => (await fetch(`${service.sandbox.origin}/_sandbox/faults`)).json();
  const spent = await order(service, { status: 503 }, { path: '/me' });
  const open = await order(service, { truncate: 3 }, { nth: 4 }, 3);
  await service.statuses(5, '/me', token);
  expect(await list()).toEqual([
    { id: spent.id, match: { path: '/me' }, fault: { status: 503 }, times: 1, used: 1, left: 0, to_pass: 0 },
    { id: open.id, match: { nth: 4 }, fault: { truncate: 3 }, times: 3, used: 2, left: 1, to_pass: 0 },
  ]);
  const faults = (await service.journal()).map(({ fault }) => fault);
  expect(faults).toEqual([spent.id, null, null, open.id, open.id]);
});

test('one fault is taken back by its id; another id is a 404', async () => {
  const { service, token } = await ready();
  const { id } = await order(service, { status: 503 });
  await order(service, { status: 502 });
  const remove = () => fetch(`${service.sandbox.origin}/_sandbox/faults/${id}`, { method: 'DELETE' });
  const first = await remove();
  expect([first.status, await first.json()]).toEqual([200, { deleted: 1 }]);
  expect((await remove()).status).toBe(404);
  expect(await service.statuses(2, '/me', token)).toEqual([502, 200]);
});

test('faults are used oldest first, and DELETE forgets them', async () => {
  const { service, token } = await ready();
  await order(service, { status: 500 });
  await order(service, { status: 502 }, {}, 9);
  expect(await service.statuses(2, '/me', token)).toEqual([500, 502]);
  const response = await fetch(`${service.sandbox.origin}/_sandbox/faults`, { method: 'DELETE' });
  expect(response.status).toBe(200);
  expect(await service.statuses(1, '/me', token)).toEqual([200]);
});

test('drop before: no answer and no effect', async () => {
  const { service, company, token } = await ready();
  await order(service, { drop: 'before' }, { path: '/me' });
  expect(await failure(service.api('/me', token))).toBe('fetch failed');
  expect((await service.api('/me', token)).headers.get(HEADER.remaining)).toBe('49');
  expect(at(await service.journal(), 0)).toMatchObject({ status: 0, company_id: company.id, path: '/me' });
});

test('drop after: no answer, but it took effect', async () => {
  const { service, company, token } = await ready();
  await order(service, { drop: 'after' });
  expect(await failure(service.api('/me', token))).toBe('fetch failed');
  expect((await service.api('/me', token)).headers.get(HEADER.remaining)).toBe('48');
  const code = await service.code(company);
  await order(service, { drop: 'after' }, { path: '/oauth/token', company_id: company.id });
  expect(await failure(service.exchange(code))).toBe('fetch failed');
  expect((await service.exchange(code)).status, 'the code is spent').toBe(400);
});

test('a fault of the token route leaves the code alone', async () => {
  const { service, company } = await ready();
  const code = await service.code(company);
  await order(service, { status: 500 }, { path: '/oauth/token', company_id: company.id });
  expect((await service.exchange(code)).status).toBe(500);
  expect((await service.exchange(code)).status).toBe(200);
});

test('truncate sends so many bytes of the body', async () => {
  const { service, token } = await ready();
  const whole = await (await service.api('/me', token)).text();
  await order(service, { truncate: 20 });
  const response = await service.api('/me', token);
  expect([response.status, await response.text()]).toEqual([200, whole.slice(0, 20)]);
});

test('truncate with drop after breaks the connection in the middle of the body', async () => {
  const { service, token } = await ready();
  await order(service, { truncate: 20, drop: 'after' });
  const response = await service.api('/me', token);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow('terminated');
});

test('delay_ms holds the answer back', async () => {
  const { service, token } = await ready();
  await order(service, { delay_ms: 150 });
  const startedAt = performance.now();
  expect((await service.api('/me', token)).status).toBe(200);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(145);
});

test.each([
  {},
  { fault: {} },
  { fault: { status: 99 } },
  { fault: { status: 500 }, times: 0 },
  { fault: { drop: 'sometimes' } },
  { fault: { truncate: -1 } },
  { fault: { status: 500, headers: { 'x-a': 'b\r\nx-c: d' } } },
  { fault: { status: 500, headers: { 'content-length': '5' } } },
  { match: { path: 'contacts' }, fault: { status: 500 } },
  { match: { nth: 0 }, fault: { status: 500 } },
  { match: { client_id: '' }, fault: { status: 500 } },
])('refuses %j', async (body) => {
  const service = await startFrozen();
  expect((await service.control('faults', body)).status).toBe(400);
});
