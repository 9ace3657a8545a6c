import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { type Operation, ROUTES } from '../../src/contract/api/api.ts';
import { message } from '../../src/contract/api/messages.ts';
import { filled, idsOf, startOpen } from './support/routes.ts';
import { at, START_MS, startCompany, startFrozen, type TestSandbox } from './support/test-sandbox.ts';

const HELLO = { body: 'Hello', sender: { handle: 'a@b.example' }, to: ['c@d.example'] };
const WRONG = [5, [1], { x: 1 }];
const LONG = 'x'.repeat(100_000);

/** What bodies need, beside those of messages; the others need nothing. */
const BODIES: Partial<Record<Operation, object>> = {
  createChildTag: { name: 'x' },
  createAccount: { name: 'x' },
  createLink: { name: 'x' },
  createChannel: { type: 'custom' },
  createApplicationEvent: { type: 'x' },
};

/** Sends with the ids of a company that no limit and no guard stops in place of a path's placeholders. */
async function start() {
  const { service, company, send } = await startOpen();
  const ids = await idsOf(service, company);
  return (method: string, path: string, body?: unknown) => send(method, filled(path, ids), body);
}

/** What comes back for a request that no HTTP library would send. */
async function raw({ sandbox }: TestSandbox, ...lines: string[]) {
  const socket = connect(Number(new URL(sandbox.origin).port), '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = new Headers(fields.map((field) => field.split(/: (.*)/s).slice(0, 2) as [string, string]));
  return { status: Number(line.split(' ')[1]), headers, body };
}

describe('Errors (our choice)', () => {
  test('Requests that cannot be read get _error and the five headers, too', async () => {
    const service = await startFrozen();
    const [host, contacts] = ['host: localhost', 'GET /api/contacts HTTP/1.1'];
    const long = LONG.slice(0, 40_000);
    for (const [status, ...lines] of [
      [501, 'FOO /api/contacts HTTP/1.1', host],
      [431, `GET /api/contacts?${long} HTTP/1.1`, host],
      [431, contacts, host, `x: ${long}`],
      [403, contacts, 'connection: close'],
      [401, contacts, host, 'expect: tea', 'connection: close'],
      [400, 'GET /api/contacts HTTP/9.9'],
      [501, 'DELETE /api/contacts HTTP/1.1', host, '', '{"a body": "without a length"}'],
    ] as const) {
      const { headers, body, ...answer } = await raw(service, ...lines);
      const _error = { status, title: expect.any(String), message: expect.any(String) };
      expect([answer.status, JSON.parse(body)]).toEqual([status, { _error }]);
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.get('date')).toBe(new Date(START_MS).toUTCString());
      const rates = [...headers].filter(([name]) => name.startsWith('x-ratelimit-'));
      expect(rates).toEqual(Array(5).fill([expect.any(String), expect.stringMatching(/^[\d.]+$/)]));
    }
  });

  const kept = ROUTES.filter(([name]) => /^(create|update|reply|re(cord|ceive)|put|import)/.test(name));

  test('No body of a route makes a document that is not as described', async () => {
    const send = await start();
    for (const [name, { method, path, answer, body: schema }] of kept) {
      const shape = (answer as z.ZodObject).shape;
      const isMessage = 'message_uid' in shape;
      const members = Object.keys(isMessage ? message.shape : shape).filter((one) => !schema?.shape[one]);
      for (const [member, wrong] of members.flatMap((one) => WRONG.map((value) => [one, value] as const))) {
        const sent = { ...(isMessage ? HELLO : BODIES[name]), [member]: wrong };
        const { status, body } = await send(method, path, sent);
        expect([200, 201, 202], `${name}: ${member}`).toContain(status);
        if (isMessage) expect((await send('GET', `/messages/${body.message_uid}`)).status).toBe(200);
      }
    }
  });
});

describe('Endpoints: routes (our choice)', () => {
  test('HEAD is answered like GET, and counts, but has no body', async () => {
    const { service, token } = await startCompany();
    const { origin, apiUrl } = service.sandbox;
    expect(await (await fetch(`${origin}/healthz`)).json()).toEqual({ status: 'ok' });
    const headers = { authorization: `Bearer ${token}` };
    const paths = ['/me', '/contacts?limit=5', '/conversations/search/order', '/contacts/crd_none'];
    const others = ['/', '/healthz', '/_sandbox/state', '/auth/oauth/authorize'].map((path) => origin + path);
    for (const url of [...paths.map((path) => apiUrl + path), ...others]) {
      const [get, head] = [await fetch(url, { headers }), await fetch(url, { method: 'HEAD', headers })];
      expect([url, head.status, await head.text()]).toEqual([url, get.status, '']);
      if (!url.startsWith(apiUrl)) continue;
      const [left, more] = [get, head].map((one) => Number(one.headers.get('x-ratelimit-remaining')));
      expect(left).toBe(Number(more) + 1);
      for (const name of ['content-type', 'content-length', 'x-service-tier'])
        expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
    }
    expect((await service.api('/links/x', token, { method: 'OPTIONS' })).status).toBe(405);
  });

  test('Changes can be read as 204 without a body, with all headers', async () => {
    const { service, company, token } = await startCompany({}, { readings: { changes: 204 } });
    const path = `/accounts/${at(company.accounts, 0)}`;
    const { status, body, headers } = await service.call('PATCH', path, token, { name: 'New name' });
    expect([status, body, headers.get('content-length')]).toEqual([204, '', null]);
    expect((await service.call('GET', path, token)).body).toMatchObject({ name: 'New name' });
    expect((await service.call('POST', '/accounts', token, { name: 'x' })).status).toBe(201);
    expect((await service.call('PATCH', path, token, { name: 5 })).status).toBe(422);
  });

  test('A public address decides what every link and both descriptions name', async () => {
    const { service, token } = await startCompany({}, { publicUrl: 'https://sandbox.example' });
    const { apiUrl, authUrl, origin } = service.sandbox;
    expect([apiUrl, authUrl]).toEqual(['https://sandbox.example/api', 'https://sandbox.example/auth']);
    const more = [`authorization: Bearer ${token}`, 'connection: close'];
    const page = await raw(service, 'GET /api/contacts HTTP/1.1', 'host: sandbox.example', ...more);
    const { _pagination, _links, _results } = JSON.parse(page.body);
    for (const link of [_pagination.next, _links.self, _results[0]._links.self])
      expect(link).toMatch(/^https:\/\/sandbox\.example\/api\/contacts/);
    expect(service.state()).toMatchObject({ api_url: apiUrl, auth_url: authUrl });
    const description = await (await fetch(`${origin}/_sandbox/openapi.json`)).text();
    expect([description.includes(apiUrl), description.includes(origin)]).toEqual([true, false]);
    const stranger = await raw(service, 'GET / HTTP/1.1', 'host: other.example', 'connection: close');
    expect(stranger.status).toBe(403);
    expect(() => service.application({ introspection_url: 'http://127.0.0.1/' })).toThrow('calls no server');
  });
});
