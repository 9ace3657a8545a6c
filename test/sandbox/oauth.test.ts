import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  at,
  basic,
  START_MS,
  startFrozen,
  startSandbox,
  type TokenResponse,
} from './support/test-sandbox.ts';

const STATE = 'a b+c%/ü&=?"<';
const HOUR_MS = 60 * 60_000;
const REFRESH_END_MS = addMonths(START_MS, 6);
const FORM = 'application/x-www-form-urlencoded';

async function start() {
  const service = await startFrozen();
  const company = at((await service.state()).companies, 0);
  const idOf = (isAdmin: boolean) => company.teammates.find(({ is_admin }) => is_admin === isAdmin)?.id ?? '';
  const { application, authUrl, apiUrl } = service.sandbox;
  return {
    service,
    company,
    application,
    admin: idOf(true),
    teammate: idOf(false),
    /** A token request with any body; null: without Basic. */
    post: (body: string, type = FORM, authorization: string | null = basic(application)) =>
      fetch(`${authUrl}/oauth/token`, {
        method: 'POST',
        headers: { 'content-type': type, ...(authorization === null ? {} : { authorization }) },
        body,
      }),
    refreshed: async (refreshToken: string) => {
      const response = await service.refresh(refreshToken);
      expect(response.status).toBe(200);
      return (await response.json()) as TokenResponse;
    },
    /** Status of an API request with this header. */
    me: (authorization?: string) =>
      fetch(`${apiUrl}/me`, { headers: authorization === undefined ? {} : { authorization } }),
  };
}

/** What an application finds in the address that the browser is sent to. */
function sentBack(response: Response): Record<string, string> {
  return Object.fromEntries(new URL(response.headers.get('location') ?? '').searchParams);
}

async function expectError(response: Response, status: number, error: string): Promise<void> {
  expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) });
  expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
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

  test('client_id and redirect_uri are those of one application; else nothing redirects', async () => {
    const { service, application } = await start();
    const redirect_uri = at(application.redirect_uris, 0);
    for (const [name, ...values] of [
      ['client_id', 'nobody'],
      ['client_id', application.client_id, application.client_id],
      ['redirect_uri'],
      ['redirect_uri', redirect_uri, redirect_uri],
      ['redirect_uri', 'http://evil.example/'],
      ['redirect_uri', `${redirect_uri}/x`],
      ['redirect_uri', redirect_uri.replace('http:', 'HTTP:')],
    ] as const) {
      const url = service.authorizeUrl();
      url.searchParams.delete(name);
      for (const value of values) url.searchParams.append(name, value);
      for (const method of ['GET', 'POST']) {
        const response = await fetch(url, { method, redirect: 'manual' });
        expect([name, values, response.status]).toEqual([name, values, 400]);
        expect(response.headers.get('location')).toBeNull();
      }
    }
  });

  test('response_type is code; another one, or none, leads back with an error', async () => {
    const { service } = await start();
    const url = service.authorizeUrl({ response_type: 'token', state: STATE });
    const another = await fetch(url, { redirect: 'manual' });
    expect(sentBack(another)).toMatchObject({ error: 'unsupported_response_type', state: STATE });
    url.searchParams.delete('response_type');
    const none = await fetch(url, { redirect: 'manual' });
    expect(sentBack(none)).toMatchObject({ error: 'invalid_request', state: STATE });
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

  test('Codes and refresh tokens belong to an application, codes to a redirect_uri, too', async () => {
    const { service, company, application } = await start();
    const { redirect_uris } = application;
    const other = await service.application({ redirect_uris });
    const code = await service.code(company);
    const form = { grant_type: 'authorization_code', code, redirect_uri: at(redirect_uris, 1) };
    await expectError(await service.token(form), 400, 'invalid_grant');
    await expectError(await service.exchange(code, other), 400, 'invalid_grant');
    const { refresh_token } = (await (await service.exchange(code)).json()) as TokenResponse;
    await expectError(await service.refresh(refresh_token, other), 400, 'invalid_grant');
  });
});

describe('Endpoints: OAuth routes (our choice)', () => {
  test('A wrong token request gets the error of RFC 6749, section 5.2', async () => {
    const { post } = await start();
    const [exchange, refresh] = ['grant_type=authorization_code', 'grant_type=refresh_token'];
    for (const [body, error, type] of [
      ['', 'invalid_request', FORM],
      ['grant_type=password', 'unsupported_grant_type', FORM],
      [`${exchange}&redirect_uri=x`, 'invalid_request', FORM],
      [`${exchange}&code=x`, 'invalid_request', FORM],
      [`${exchange}&code=x&redirect_uri=x`, 'invalid_grant', FORM],
      [refresh, 'invalid_request', FORM],
      [`${refresh}&refresh_token=x`, 'invalid_grant', FORM],
      [`${refresh}&refresh_token=x&refresh_token=x`, 'invalid_request', FORM],
      [`${refresh}&refresh_token=${'x'.repeat(2_000_000)}`, 'invalid_request', FORM],
      [`${refresh}&refresh_token=x`, 'invalid_request', 'text/plain'],
      ['{"grant_type":', 'invalid_request', 'application/json'],
      ['["refresh_token"]', 'invalid_request', 'application/json'],
      ['{"grant_type":"refresh_token","refresh_token":5}', 'invalid_request', 'application/json'],
    ] as const) {
      await expectError(await post(body, type), 400, error);
    }
  });

  test('The token route takes JSON as well as a form', async () => {
    const { service, company, application, post } = await start();
    const [code, redirect_uri] = [await service.code(company), at(application.redirect_uris, 0)];
    const body = JSON.stringify({ grant_type: 'authorization_code', code, redirect_uri });
    expect((await post(body, 'application/json; charset=utf-8')).status).toBe(200);
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

  test('A denial leads back with access_denied; an incomplete form gets the page again', async () => {
    const { service, admin } = await start();
    const denied = await service.decide({ decision: 'deny' }, { state: STATE });
    expect(sentBack(denied)).toMatchObject({ error: 'access_denied', state: STATE });
    for (const form of [
      { decision: 'approve' },
      { decision: 'approve', teammate_id: 'tea_nobody' },
      { teammate_id: admin },
      { decision: 'perhaps', teammate_id: admin },
    ]) {
      const response = await service.decide(form as Record<string, string>);
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
      expect(await response.text()).toMatch(/role="alert">\s*Choose /);
    }
  });

  test('The consent page shows every teammate, escapes all texts, and runs no script', async () => {
    const { service } = await start();
    const attack = '"><script>alert(1)</script>';
    const redirect_uri = `http://other.example/?${attack}`;
    const { client_id } = await service.application({ name: attack, redirect_uris: [redirect_uri] });
    const people = (await service.state()).companies.flatMap(({ teammates }) => teammates);
    const response = await fetch(service.authorizeUrl({ client_id, redirect_uri }));
    const html = await response.text();
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
  test('An access token lives 60 minutes, then it gets 401, and a refresh gives a new one', async () => {
    const { service, company, refreshed } = await start();
    const first = await service.install(company);
    await service.advance(HOUR_MS - 1);
    expect((await service.api('/me', first.access_token)).status).toBe(200);
    await service.advance(1);
    const refused = await service.api('/me', first.access_token);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
    const second = await refreshed(first.refresh_token);
    expect(Number(second.expires_at) - Number(first.expires_at)).toBe(3600);
    expect((await service.api('/me', second.access_token)).status).toBe(200);
  });

  test('A refresh in the last 24 hours, and not before, gives a refresh token of six months', async () => {
    const { service, company, refreshed } = await start();
    const { refresh_token } = await service.install(company);
    const rotatedAt = REFRESH_END_MS - 24 * HOUR_MS;
    await service.done('clock', { set: rotatedAt - 1 });
    expect((await refreshed(refresh_token)).refresh_token).toBe(refresh_token);
    await service.advance(1);
    const next = (await refreshed(refresh_token)).refresh_token;
    expect(next).not.toBe(refresh_token);
    await service.done('clock', { set: addMonths(rotatedAt, 6) - 1 });
    await refreshed(next);
    await service.advance(1);
    await expectError(await service.refresh(next), 400, 'invalid_grant');
  });
});

describe('States: token lifecycle (our choice)', () => {
  test('Earlier access and refresh tokens live on to their own end', async () => {
    const { service, company, refreshed } = await start();
    const { access_token, refresh_token } = await service.install(company);
    await service.install(company);
    await refreshed(refresh_token);
    expect((await service.api('/me', access_token)).status).toBe(200);
    await service.done('clock', { set: REFRESH_END_MS - 1 });
    await refreshed(refresh_token);
    const again = await refreshed(refresh_token);
    await service.advance(1);
    await expectError(await service.refresh(refresh_token), 400, 'invalid_grant');
    expect((await refreshed(again.refresh_token)).refresh_token).toBe(again.refresh_token);
  });

  test('Six months are calendar months in UTC', async () => {
    const { service, company } = await start();
    await service.freeze(Date.UTC(2026, 7, 31, 12));
    const { refresh_token } = await service.install(company);
    await service.done('clock', { set: Date.UTC(2027, 1, 28, 12) - 1 });
    expect((await service.refresh(refresh_token)).status).toBe(200);
    await service.advance(1);
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
      const error_description = expect.stringContaining('administrator');
      expect(sentBack(response)).toEqual({ error: 'access_denied', error_description });
    }
  });

  test('5. The token route takes Basic with id and secret in Base64, and nothing else', async () => {
    const { service, company, application, post } = await start();
    const { client_id, client_secret } = application;
    const code = await service.code(company);
    const exchange = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: at(application.redirect_uris, 0),
    };
    const body = new URLSearchParams({ ...exchange, client_id, client_secret }).toString();
    for (const header of [
      null,
      'Bearer abc',
      basic({ ...application, client_secret: 'wrong' }),
      basic({ ...application, client_id: 'nobody' }),
      `Basic ${client_id}:${client_secret}`,
      `${basic(application)}!`,
    ]) {
      const response = await post(body, FORM, header);
      await expectError(response, 401, 'invalid_client');
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
    }
    expect(client_secret, 'the first colon parts').toContain(':');
    expect((await service.exchange(code)).status, 'the code is still good').toBe(200);
  });

  test('6. Basic, a refresh token and an unknown token open nothing of the API', async () => {
    const { service, company, application, me } = await start();
    const { refresh_token } = await service.install(company);
    for (const header of [basic(application), `Bearer ${refresh_token}`, 'Bearer x', 'Bearer', undefined]) {
      const response = await me(header);
      expect([header, response.status]).toEqual([header, 401]);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });
});

describe('kept tokens', () => {
  test('With a file, tokens outlive the sandbox; a reset ends them for good', async () => {
    const tokensFile = join(tempDir(), 'tokens');
    const first = await startSandbox({ tokensFile });
    const { access_token, refresh_token } = await first.install(at((await first.state()).companies, 0));
    await first.sandbox.close();
    const second = await startSandbox({ tokensFile });
    expect((await second.api('/me', access_token)).status).toBe(200);
    expect(await (await second.refresh(refresh_token)).json()).toMatchObject({ refresh_token });
    await second.done('reset', {});
    expect((await second.api('/me', access_token)).status).toBe(401);
    await second.sandbox.close();
    const third = await startSandbox({ tokensFile });
    expect((await third.api('/me', access_token)).status).toBe(401);
  });
});
