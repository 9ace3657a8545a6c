import { request } from 'node:http';
import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { HEADER } from '../../src/contract/headers.ts';
import { at, basic, START_MS, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';

const RATE_HEADERS = [HEADER.limit, HEADER.remaining, HEADER.reset, HEADER.burstLimit, HEADER.burstRemaining];

function rate(response: Response): (number | null)[] {
  return RATE_HEADERS.map((name) => {
    const value = response.headers.get(name);
    return value === null ? null : Number(value);
  });
}

async function installed(service: TestSandbox) {
  const company = at((await service.state()).companies, 0);
  return { company, ...(await service.install(company)) };
}

test('GET /me tells the company behind the token', async () => {
  const service = await startFrozen();
  const { company, access_token } = await installed(service);
  const response = await service.api('/me', access_token);
  expect(await response.json()).toEqual({
    _links: { self: `${service.sandbox.apiUrl}/me` },
    id: company.id,
    name: company.name,
  });
});

test.each(['/me', '/contacts', '/contacts/crd_1', '/conversations', '/conversations/cnv_1', '/nothing'])(
  '%s without a token is a 401 with the five headers',
  async (path) => {
    const service = await startFrozen();
    const response = await fetch(`${service.sandbox.apiUrl}${path}`);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    const { _error } = (await response.json()) as ErrorBody;
    expect(_error).toEqual({ status: 401, title: 'Unauthorized', message: expect.any(String) });
    expect(rate(response)).toEqual([50, 50, START_MS / 1000 + 60, 25, 25]);
  },
);

test('neither Basic, nor a refresh token, nor an unknown one opens the API', async () => {
  const service = await startFrozen();
  const { refresh_token } = await installed(service);
  for (const authorization of [
    basic(service.sandbox.application),
    `Bearer ${refresh_token}`,
    'Bearer x',
    'Bearer',
  ]) {
    const response = await fetch(`${service.sandbox.apiUrl}/me`, { headers: { authorization } });
    expect(response.status, authorization).toBe(401);
    expect(rate(response)).not.toContain(null);
  }
});

test('an expired token gets 401, which counts nowhere', async () => {
  const service = await startFrozen();
  const { access_token, refresh_token } = await installed(service);
  await service.advance(60 * 60_000);
  for (let times = 0; times < 3; times++) {
    const response = await service.api('/me', access_token);
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
    expect(rate(response).slice(0, 2)).toEqual([120, 120]);
  }
  const fresh = (await (await service.refresh(refresh_token)).json()) as { access_token: string };
  expect(rate(await service.api('/me', fresh.access_token)).slice(0, 2)).toEqual([120, 119]);
});

test('404 and 405 carry the five headers, and count', async () => {
  const service = await startFrozen();
  const { access_token } = await installed(service);
  const missing = await service.api('/nothing', access_token);
  expect(missing.status).toBe(404);
  expect((await missing.json()) as ErrorBody).toMatchObject({ _error: { status: 404, title: 'Not Found' } });
  const wrong = await service.api('/contacts', access_token, { method: 'DELETE' });
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get('allow')).toBe('GET');
  expect((await wrong.json()) as ErrorBody).toMatchObject({ _error: { status: 405 } });
  const head = await service.api('/contacts', access_token, { method: 'HEAD' });
  expect(head.status).toBe(405);
  expect([missing, wrong, head].map((response) => rate(response)[1])).toEqual([119, 118, 117]);
  for (const path of ['/contacts/', '//contacts', '/contacts/crd_1', '/conversations/%zz', '/contacts/a/b']) {
    expect((await service.api(path, access_token)).status, path).toBe(404);
  }
});

test('a Host that is not this machine is refused', async () => {
  const service = await startFrozen();
  const { origin } = service.sandbox;
  const statusFor = (host: string, path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      request(`${origin}${path}`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
  for (const path of ['/', '/api/me', '/auth/oauth/authorize', '/_sandbox/state']) {
    expect(await statusFor('evil.example', path)).toBe(403);
    expect(await statusFor('localhost.evil.example:4010', path)).toBe(403);
  }
  for (const host of ['localhost:4010', '127.0.0.1', '[::1]:4010']) {
    expect(await statusFor(host, '/_sandbox/state')).toBe(200);
  }
});
