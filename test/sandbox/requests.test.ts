import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { at, START_MS, startFrozen, startSandbox, type TestSandbox } from './support/test-sandbox.ts';

/** What comes back for bytes that no HTTP library would send. */
async function raw({ sandbox }: TestSandbox, bytes: string) {
  const socket = connect(Number(new URL(sandbox.origin).port), '127.0.0.1');
  socket.write(bytes);
  const answer = await text(socket);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = new Headers(fields.map((field) => field.split(/: (.*)/s).slice(0, 2) as [string, string]));
  return { status: Number(line.split(' ')[1]), headers, body };
}

describe('Errors (our choice)', () => {
  const long = 'x'.repeat(40_000);
  test.each([
    ['an unknown method', 'FOO /api/contacts HTTP/1.1\r\nhost: localhost\r\n\r\n', 501],
    ['an address that is too long', `GET /api/contacts?${long} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 431],
    ['a header that is too long', `GET /api/contacts HTTP/1.1\r\nhost: localhost\r\nx: ${long}\r\n\r\n`, 431],
    ['no host', 'GET /api/contacts HTTP/1.1\r\nconnection: close\r\n\r\n', 403],
    [
      'an unknown Expect',
      'GET /api/contacts HTTP/1.1\r\nhost: localhost\r\nexpect: tea\r\nconnection: close\r\n\r\n',
      401,
    ],
    ['an unknown version', 'GET /api/contacts HTTP/9.9\r\n\r\n', 400],
  ])('%s gets _error and the five headers, too', async (_, bytes, status) => {
    const answer = await raw(await startFrozen(), bytes);
    const _error = { status, title: expect.any(String), message: expect.any(String) };
    expect([answer.status, JSON.parse(answer.body)]).toEqual([status, { _error }]);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('date')).toBe(new Date(START_MS).toUTCString());
    for (const name of [
      HEADER.limit,
      HEADER.remaining,
      HEADER.reset,
      HEADER.burstLimit,
      HEADER.burstRemaining,
    ])
      expect(answer.headers.get(name), name).toMatch(/^[\d.]+$/);
  });
});

describe('addresses', () => {
  test('HEAD is answered wherever GET is, and /healthz tells that the sandbox is there', async () => {
    const { sandbox } = await startFrozen();
    expect(await (await fetch(`${sandbox.origin}/healthz`)).json()).toEqual({ status: 'ok' });
    for (const path of ['/', '/healthz', '/_sandbox/state', '/api/me', '/auth/oauth/authorize']) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) => fetch(`${sandbox.origin}${path}`, { method })),
      );
      expect([path, head?.status]).toEqual([path, get?.status]);
      expect(await head?.text()).toBe('');
    }
  });

  test('A public address decides what every link and both descriptions name', async () => {
    const service = await startSandbox({ publicUrl: 'https://sandbox.example' });
    const { apiUrl, authUrl, origin } = service.sandbox;
    expect([apiUrl, authUrl]).toEqual(['https://sandbox.example/api', 'https://sandbox.example/auth']);
    const company = await service.company({ contacts: 60 });
    const token = at(company.api_tokens, 0).token;
    const page = await raw(
      service,
      `GET /api/contacts HTTP/1.1\r\nhost: sandbox.example\r\nauthorization: Bearer ${token}\r\nconnection: close\r\n\r\n`,
    );
    const { _pagination, _links, _results } = JSON.parse(page.body);
    for (const link of [_pagination.next, _links.self, _results[0]._links.self])
      expect(link).toMatch(/^https:\/\/sandbox\.example\/api\/contacts/);
    expect(await service.state()).toMatchObject({ api_url: apiUrl, auth_url: authUrl });
    const description = await (await fetch(`${origin}/_sandbox/openapi.json`)).text();
    expect(description).toContain('https://sandbox.example/api');
    expect(description).not.toContain(origin);
    const stranger = await raw(service, 'GET / HTTP/1.1\r\nhost: other.example\r\nconnection: close\r\n\r\n');
    expect(stranger.status).toBe(403);
  });
});
