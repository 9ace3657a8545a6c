import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  at,
  basic,
  type Credentials,
  START_MS,
  startFrozen,
  startSandbox,
  type TestSandbox,
  type TokenResponse,
} from './support/test-sandbox.ts';

const STATE = 'a b+c%/ü&=?"<';
const HOUR_MS = 60 * 60_000;
const REFRESH_END_MS = addMonths(START_MS, 6);

async function start() {
  const service = await startFrozen();
  const company = at((await service.state()).companies, 0);
  const [admin, teammate] = [true, false].map(
    (isAdmin) => company.teammates.find(({ is_admin }) => is_admin === isAdmin)?.id ?? '',
  );
  return { service, company, admin: admin ?? '', teammate: teammate ?? '' };
}

/** What an application finds in the address that the browser is sent to. */
function sentBack(response: Response): Record<string, string> {
  return Object.fromEntries(new URL(response.headers.get('location') ?? '').searchParams);
}

async function expectError(response: Response, status: number, error: string): Promise<void> {
  expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) });
  expect(response.status).toBe(status);
  expect(response.headers.get('cache-control')).toBe('no-store');
}

async function refreshed(service: TestSandbox, refreshToken: string): Promise<TokenResponse> {
  const response = await service.refresh(refreshToken);
  expect(response.status).toBe(200);
  return (await response.json()) as TokenResponse;
}

describe('Endpoints: OAuth routes', () => {
  test('An approval leads back to redirect_uri with a code and the unchanged state', async () => {
    const { service, admin } = await start();
    const response = await service.decide({ teammate_id: admin, decision: 'approve' }, { state: STATE });
    expect(response.status).toBe(303);
    expect(response.headers.get('location')).toMatch(/^http:\/\/localhost:3000\/oauth\/callback\?/);
    expect(sentBack(response)).toEqual({ code: expect.stringMatching(/^[\w-]{20,}$/), state: STATE });
  });

  test('state may be left out; redirect_uri keeps its own query', async () => {
    const { service } = await start();
    const redirect_uri = 'http://other.example/back?tenant=a%20b';
    const { client_id } = await service.application({ redirect_uris: [redirect_uri] });
    const response = await service.decide({ decision: 'deny' }, { client_id, redirect_uri });
    expect(response.headers.get('location')).toMatch(/back\?tenant=a%20b&error=access_denied&/);
    expect(sentBack(response)).not.toHaveProperty('state');
  });

  test.each([
    ['an unknown client', { client_id: 'nobody' }],
    ['an address that is not registered', { redirect_uri: 'http://evil.example/' }],
    ['a longer address', { redirect_uri: 'http://localhost:3000/oauth/callback/x' }],
    ['an address in other letters', { redirect_uri: 'HTTP://localhost:3000/oauth/callback' }],
    ['no address', { redirect_uri: '' }],
  ])('An authorization with %s is a page, and never redirects', async (_, parameters) => {
    const { service } = await start();
    for (const method of ['GET', 'POST']) {
      const response = await fetch(service.authorizeUrl(parameters), { method, redirect: 'manual' });
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    }
  });

  test.each(['client_id', 'redirect_uri'])('A repeated %s never redirects', async (name) => {
    const { service } = await start();
    const url = service.authorizeUrl();
    url.searchParams.append(name, url.searchParams.get(name) ?? '');
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(400);
  });

  test.each([
    ['token', 'unsupported_response_type'],
    [undefined, 'invalid_request'],
  ])('response_type %s leads back with the error %s', async (type, error) => {
    const { service } = await start();
    const url = service.authorizeUrl({ response_type: type ?? '', state: STATE });
    if (type === undefined) url.searchParams.delete('response_type');
    const response = await fetch(url, { redirect: 'manual' });
    expect(response.status).toBe(302);
    expect(sentBack(response)).toMatchObject({ error, state: STATE });
  });

  test('A code gives access_token, refresh_token, expires_at and token_type Bearer', async () => {
    const { service, company } = await start();
    const response = await service.exchange(await service.code(company));
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(await response.json()).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      expires_at: String(Math.floor(START_MS / 1000) + 3600),
      token_type: 'Bearer',
    });
  });

  test('A code is bound to its application and its redirect_uri', async () => {
    const { service, company } = await start();
    const { redirect_uris } = service.sandbox.application;
    const code = await service.code(company);
    const form = { grant_type: 'authorization_code', code, redirect_uri: at(redirect_uris, 1) };
    await expectError(
      await service.exchange(code, await service.application({ redirect_uris })),
      400,
      'invalid_grant',
    );
    await expectError(await service.token(form), 400, 'invalid_grant');
    expect((await service.exchange(code)).status).toBe(200);
  });

  test('A refresh token is of use to its own application alone', async () => {
    const { service, company } = await start();
    const { refresh_token } = await service.install(company);
    await expectError(
      await service.refresh(refresh_token, await service.application()),
      400,
      'invalid_grant',
    );
  });
});

describe('Endpoints: OAuth routes (our choice)', () => {
  test.each([
    ['no grant_type', {}, 'invalid_request'],
    ['another grant_type', { grant_type: 'password' }, 'unsupported_grant_type'],
    ['no code', { grant_type: 'authorization_code', redirect_uri: 'x' }, 'invalid_request'],
    ['no redirect_uri', { grant_type: 'authorization_code', code: 'x' }, 'invalid_request'],
    ['no refresh_token', { grant_type: 'refresh_token' }, 'invalid_request'],
    ['an unknown code', { grant_type: 'authorization_code', code: 'x', redirect_uri: 'x' }, 'invalid_grant'],
    ['an unknown refresh token', { grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_grant'],
  ])('%s is the error of RFC 6749', async (_, form: Record<string, string>, error) => {
    const { service } = await start();
    await expectError(await service.token(form), 400, error);
  });

  test.each([
    ['application/x-www-form-urlencoded', 'grant_type=refresh_token&refresh_token=a&refresh_token=a'],
    ['application/x-www-form-urlencoded', `grant_type=refresh_token&refresh_token=${'x'.repeat(2_000_000)}`],
    ['text/plain', 'grant_type=refresh_token&refresh_token=x'],
    ['application/json', '{"grant_type":'],
    ['application/json', '["refresh_token"]'],
    ['application/json', '{"grant_type":"refresh_token","refresh_token":5}'],
  ])('A body of %s that cannot be read is an invalid_request', async (type, body) => {
    const { service } = await start();
    const { application, authUrl } = service.sandbox;
    const headers = { authorization: basic(application), 'content-type': type };
    const response = await fetch(`${authUrl}/oauth/token`, { method: 'POST', headers, body });
    await expectError(response, 400, 'invalid_request');
  });

  test('The token route takes JSON as well as a form', async () => {
    const { service, company } = await start();
    const { application, authUrl } = service.sandbox;
    const code = await service.code(company);
    const redirect_uri = at(application.redirect_uris, 0);
    const response = await fetch(`${authUrl}/oauth/token`, {
      method: 'POST',
      headers: { authorization: basic(application), 'content-type': 'application/json; charset=utf-8' },
      body: JSON.stringify({ grant_type: 'authorization_code', code, redirect_uri }),
    });
    expect(response.status).toBe(200);
  });

  test('A code lives ten minutes', async () => {
    const { service, company } = await start();
    const [first, second] = [await service.code(company), await service.code(company)];
    await service.advance(10 * 60_000 - 1);
    expect((await service.exchange(first)).status).toBe(200);
    await service.advance(1);
    await expectError(await service.exchange(second), 400, 'invalid_grant');
  });

  test('A code used twice ends the tokens that it gave, and no others', async () => {
    const { service, company } = await start();
    const kept = await service.install(company);
    const code = await service.code(company);
    const lost = (await (await service.exchange(code)).json()) as TokenResponse;
    await expectError(await service.exchange(code), 400, 'invalid_grant');
    await expectError(await service.refresh(lost.refresh_token), 400, 'invalid_grant');
    expect((await service.api('/me', lost.access_token)).status).toBe(401);
    expect((await service.api('/me', kept.access_token)).status).toBe(200);
  });

  test('A denial leads back with access_denied, also if nobody is chosen', async () => {
    const { service } = await start();
    const response = await service.decide({ decision: 'deny' }, { state: STATE });
    expect(sentBack(response)).toMatchObject({ error: 'access_denied', state: STATE });
  });

  test.each([
    ['nobody chosen', () => ({ decision: 'approve' })],
    ['a stranger', () => ({ decision: 'approve', teammate_id: 'tea_nobody' })],
    ['no decision', (admin: string) => ({ teammate_id: admin })],
    ['another decision', (admin: string) => ({ decision: 'perhaps', teammate_id: admin })],
  ])('A consent form with %s gets the page again', async (_, form: (id: string) => object) => {
    const { service, admin } = await start();
    const response = await service.decide(form(admin) as Record<string, string>);
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    expect(await response.text()).toMatch(/role="alert">\s*Choose /);
  });

  test('The consent page shows every teammate, escapes all texts, and runs no script', async () => {
    const { service } = await start();
    const attack = '"><script>alert(1)</script>';
    const redirect_uri = `http://other.example/?${attack}`;
    const { client_id } = await service.application({ name: attack, redirect_uris: [redirect_uri] });
    const { companies } = await service.state();
    const response = await fetch(service.authorizeUrl({ client_id, redirect_uri }));
    const html = await response.text();
    const people = companies.flatMap(({ teammates }) => teammates);
    expect(html.match(/type="radio" name="teammate_id"/g)).toHaveLength(people.length);
    expect(html.match(/>Administrator</g)).toHaveLength(people.filter(({ is_admin }) => is_admin).length);
    for (const page of [html, await (await fetch(service.authorizeUrl({ client_id: attack }))).text()]) {
      expect(page).toContain('&lt;script&gt;');
      expect(page).not.toContain('<script>alert');
    }
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors/);
    expect(response.headers.get('x-frame-options')).toBe('DENY');
  });
});

describe('States: token lifecycle', () => {
  test('An access token lives 60 minutes, then it gets 401', async () => {
    const { service, company } = await start();
    const { access_token } = await service.install(company);
    await service.advance(HOUR_MS - 1);
    expect((await service.api('/me', access_token)).status).toBe(200);
    await service.advance(1);
    const refused = await service.api('/me', access_token);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  test('A refresh gives a new access token, also after the earlier one has expired', async () => {
    const { service, company } = await start();
    const first = await service.install(company);
    await service.advance(HOUR_MS);
    const second = await refreshed(service, first.refresh_token);
    expect(Number(second.expires_at) - Number(first.expires_at)).toBe(3600);
    expect((await service.api('/me', second.access_token)).status).toBe(200);
  });

  test('A refresh more than 24 hours before the end answers the same refresh token', async () => {
    const { service, company } = await start();
    const { refresh_token } = await service.install(company);
    await service.done('clock', { set: REFRESH_END_MS - 24 * HOUR_MS - 1 });
    expect((await refreshed(service, refresh_token)).refresh_token).toBe(refresh_token);
  });

  test('A refresh in the last 24 hours answers a new one, which has six months of its own', async () => {
    const { service, company } = await start();
    const { refresh_token } = await service.install(company);
    const rotatedAt = REFRESH_END_MS - 24 * HOUR_MS;
    await service.done('clock', { set: rotatedAt });
    const next = await refreshed(service, refresh_token);
    expect(next.refresh_token).not.toBe(refresh_token);
    await service.done('clock', { set: addMonths(rotatedAt, 6) - 1 });
    expect((await refreshed(service, next.refresh_token)).refresh_token).not.toBe(next.refresh_token);
    await service.advance(1);
    await expectError(await service.refresh(next.refresh_token), 400, 'invalid_grant');
  });
});

describe('States: token lifecycle (our choice)', () => {
  test('Earlier access and refresh tokens live on to their own end', async () => {
    const { service, company } = await start();
    await service.install(company);
    const { access_token, refresh_token } = await service.install(company);
    await refreshed(service, refresh_token);
    expect((await service.api('/me', access_token)).status).toBe(200);
    await service.done('clock', { set: REFRESH_END_MS - 1 });
    await refreshed(service, refresh_token);
    const again = await refreshed(service, refresh_token);
    await service.advance(1);
    await expectError(await service.refresh(refresh_token), 400, 'invalid_grant');
    expect((await refreshed(service, again.refresh_token)).refresh_token).toBe(again.refresh_token);
  });

  test('Six months are calendar months in UTC', async () => {
    const { service, company } = await start();
    await service.freeze(Date.UTC(2026, 7, 31, 12));
    const { refresh_token } = await service.install(company);
    const { tokens } = await service.state();
    const end = Date.UTC(2027, 1, 28, 12);
    expect(tokens.find(({ kind }) => kind === 'refresh')?.expires_at).toBe(end);
    await service.done('clock', { set: end });
    expect((await service.refresh(refresh_token)).status).toBe(400);
  });
});

describe('Authentication', () => {
  test('3. Only an administrator may authorize an application', async () => {
    const { service, teammate } = await start();
    for (const kind of ['partner', 'automation']) {
      const { client_id, redirect_uris } = await service.application({ kind });
      const form = { teammate_id: teammate, decision: 'approve' };
      const response = await service.decide(form, { client_id, redirect_uri: at(redirect_uris, 0) });
      expect(sentBack(response)).toEqual({
        error: 'access_denied',
        error_description: expect.stringContaining('administrator'),
      });
    }
  });

  test.each([
    ['no header', () => undefined],
    ['Bearer', () => 'Bearer abc'],
    [
      'a wrong secret',
      ({ client_id }: Credentials) => basic({ client_id, client_secret: 'wrong', redirect_uris: [] }),
    ],
    ['an unknown client', ({ client_secret }: Credentials) => `Basic ${btoa(`nobody:${client_secret}`)}`],
    ['plain text', ({ client_id, client_secret }: Credentials) => `Basic ${client_id}:${client_secret}`],
    ['more after the Base64', (application: Credentials) => `${basic(application)}!`],
  ])('5. The token route takes Basic with id and secret in Base64, not %s', async (_, header) => {
    const { service, company } = await start();
    const { application, authUrl } = service.sandbox;
    const code = await service.code(company);
    const authorization = (header as (application: Credentials) => string | undefined)(application);
    const response = await fetch(`${authUrl}/oauth/token`, {
      method: 'POST',
      headers: authorization === undefined ? {} : { authorization },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: at(application.redirect_uris, 0),
        client_id: application.client_id,
        client_secret: application.client_secret,
      }),
    });
    await expectError(response, 401, 'invalid_client');
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
    expect(application.client_secret, 'the first colon parts').toContain(':');
    expect((await service.exchange(code)).status, 'the code is still good').toBe(200);
  });

  test('6. Basic, a refresh token and an unknown token open nothing of the API', async () => {
    const { service, company } = await start();
    const { refresh_token } = await service.install(company);
    for (const authorization of [
      basic(service.sandbox.application),
      `Bearer ${refresh_token}`,
      'Bearer x',
      'Bearer',
      undefined,
    ]) {
      const headers = authorization === undefined ? {} : { authorization };
      const response = await fetch(`${service.sandbox.apiUrl}/me`, { headers });
      expect(response.status, authorization).toBe(401);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });
});

describe('kept tokens', () => {
  test('With a file, tokens outlive the sandbox; a reset ends them for good', async () => {
    const tokensFile = join(tempDir(), 'tokens');
    const first = await startSandbox({ tokensFile });
    const tokens = await first.install(at((await first.state()).companies, 0));
    await first.sandbox.close();
    const second = await startSandbox({ tokensFile });
    expect((await second.api('/me', tokens.access_token)).status).toBe(200);
    expect((await refreshed(second, tokens.refresh_token)).refresh_token).toBe(tokens.refresh_token);
    await second.done('reset', {});
    expect((await second.api('/me', tokens.access_token)).status).toBe(401);
    await second.sandbox.close();
    const third = await startSandbox({ tokensFile });
    expect((await third.api('/me', tokens.access_token)).status).toBe(401);
  });
});
