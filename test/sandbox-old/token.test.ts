import { expect, test } from 'vitest';
import {
  at,
  basic,
  START_MS,
  startFrozen,
  type TestSandbox,
  type TokenResponse,
} from '../sandbox/support/test-sandbox.ts';

async function firstCompany(service: TestSandbox) {
  return at((await service.state()).companies, 0);
}

async function expectError(response: Response, status: number, error: string): Promise<void> {
  expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) });
  expect(response.status).toBe(status);
  expect(response.headers.get('cache-control')).toBe('no-store');
}

test('a code gives exactly the four members of the specification', async () => {
  const service = await startFrozen();
  const response = await service.exchange(await service.code(await firstCompany(service)));
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(await response.json()).toEqual({
    access_token: expect.any(String),
    refresh_token: expect.any(String),
    expires_at: String(Math.floor(START_MS / 1000) + 3600),
    token_type: 'Bearer',
  });
});

test('the body may be JSON', async () => {
  const service = await startFrozen();
  const { application, authUrl } = service.sandbox;
  const code = await service.code(await firstCompany(service));
  const redirect_uri = at(application.redirect_uris, 0);
  const response = await fetch(`${authUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: basic(application), 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify({ grant_type: 'authorization_code', code, redirect_uri }),
  });
  expect(response.status).toBe(200);
});

test.each([
  ['no header', () => undefined],
  ['Bearer', () => 'Bearer abc'],
  ['a wrong secret', (id: string) => `Basic ${btoa(`${id}:wrong`)}`],
  ['an unknown client', (_: string, secret: string) => `Basic ${btoa(`nobody:${secret}`)}`],
  [
    'form-encoded credentials',
    (id: string, secret: string) =>
      `Basic ${btoa(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`)}`,
  ],
  ['no Base64', (id: string, secret: string) => `Basic ${id}:${secret}`],
  ['Base64 with something after it', (id: string, secret: string) => `Basic ${btoa(`${id}:${secret}`)}!`],
])('the token route refuses %s', async (_, header: (id: string, secret: string) => string | undefined) => {
  const service = await startFrozen();
  const { application, authUrl } = service.sandbox;
  const { client_id, client_secret, redirect_uris } = application;
  const code = await service.code(await firstCompany(service));
  const authorization = header(client_id, client_secret);
  const form = { grant_type: 'authorization_code', code, redirect_uri: at(redirect_uris, 0) };
  const response = await fetch(`${authUrl}/oauth/token`, {
    method: 'POST',
    headers: authorization === undefined ? {} : { authorization },
    body: new URLSearchParams({ ...form, client_id, client_secret }),
  });
  await expectError(response, 401, 'invalid_client');
  expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
  expect((await service.exchange(code)).status, 'the code is still good').toBe(200);
});

test('the secret may hold a colon: the first one parts', async () => {
  const service = await startFrozen();
  expect(service.sandbox.application.client_secret).toContain(':');
  expect((await service.refresh('nothing')).status).toBe(400);
});

test.each([
  ['no grant_type', {}, 'invalid_request'],
  ['another grant_type', { grant_type: 'password' }, 'unsupported_grant_type'],
  ['no code', { grant_type: 'authorization_code', redirect_uri: 'x' }, 'invalid_request'],
  ['no redirect_uri', { grant_type: 'authorization_code', code: 'x' }, 'invalid_request'],
  ['no refresh_token', { grant_type: 'refresh_token' }, 'invalid_request'],
  ['an unknown code', { grant_type: 'authorization_code', code: 'x', redirect_uri: 'x' }, 'invalid_grant'],
  ['an unknown refresh token', { grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_grant'],
  [
    'the secret in the body too',
    { grant_type: 'refresh_token', refresh_token: 'x', client_secret: 'x' },
    'invalid_request',
  ],
])('%s is an error of RFC 6749', async (_, form: Record<string, string>, error) => {
  const service = await startFrozen();
  await expectError(await service.token(form), 400, error);
});

test('a repeated parameter is an invalid_request', async () => {
  const service = await startFrozen();
  const form = new URLSearchParams('grant_type=refresh_token&refresh_token=a&refresh_token=a');
  await expectError(await service.token(form), 400, 'invalid_request');
});

test.each([
  ['text/plain', 'grant_type=refresh_token&refresh_token=x'],
  ['application/json', '{"grant_type":'],
  ['application/json', '["refresh_token"]'],
  ['application/json', '{"grant_type":"refresh_token","refresh_token":5}'],
])('a body of %s like %s is an invalid_request', async (type, body) => {
  const service = await startFrozen();
  const { application, authUrl } = service.sandbox;
  const headers = { authorization: basic(application), 'content-type': type };
  await expectError(
    await fetch(`${authUrl}/oauth/token`, { method: 'POST', headers, body }),
    400,
    'invalid_request',
  );
});

test('only POST', async () => {
  const service = await startFrozen();
  const response = await fetch(`${service.sandbox.authUrl}/oauth/token`);
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe('POST');
});

test('a code lives ten minutes', async () => {
  const service = await startFrozen();
  const company = await firstCompany(service);
  const codes = [await service.code(company), await service.code(company)];
  await service.advance(10 * 60_000 - 1);
  expect((await service.exchange(at(codes, 0))).status).toBe(200);
  await service.advance(1);
  await expectError(await service.exchange(at(codes, 1)), 400, 'invalid_grant');
});

test('a code is bound to its application and its redirect_uri', async () => {
  const service = await startFrozen();
  const other = await service.application({ redirect_uris: service.sandbox.application.redirect_uris });
  const code = await service.code(await firstCompany(service));
  await expectError(await service.exchange(code, other), 400, 'invalid_grant');
  const redirect_uri = at(service.sandbox.application.redirect_uris, 1);
  await expectError(
    await service.token({ grant_type: 'authorization_code', code, redirect_uri }),
    400,
    'invalid_grant',
  );
  expect((await service.exchange(code)).status).toBe(200);
});

test('a code used twice gives nothing, and ends the tokens that it gave, and those alone', async () => {
  const service = await startFrozen();
  const company = await firstCompany(service);
  const kept = await service.install(company);
  const code = await service.code(company);
  const lost = (await (await service.exchange(code)).json()) as TokenResponse;
  await expectError(await service.exchange(code), 400, 'invalid_grant');
  expect((await service.api('/me', lost.access_token)).status).toBe(401);
  await expectError(await service.refresh(lost.refresh_token), 400, 'invalid_grant');
  expect((await service.api('/me', kept.access_token)).status).toBe(200);
});

test('a body that is far too large is an error of OAuth’s form, too', async () => {
  const { sandbox } = await startFrozen();
  const response = await fetch(`${sandbox.authUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: basic(sandbox.application) },
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x'.repeat(2_000_000) }),
  });
  await expectError(response, 400, 'invalid_request');
});
