import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  type ApiAnswer,
  at,
  basic,
  type Credentials,
  START_MS,
  startFrozen,
  startSandbox,
} from './support/test-sandbox.ts';

const STATE = 'a b+c%/ü&=?"<';
const HOUR_MS = 60 * 60_000;
const REFRESH_END_MS = addMonths(START_MS, 6);
const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

async function start() {
  const service = await startFrozen();
  const { application, clock } = service.sandbox;
  const company = service.company();
  return {
    ...{ service, application, clock, company, redirect_uri: at(application.redirect_uris, 0) },
    admin: at(company.teammates, 0).id,
    refreshed: async (refreshToken: string) => {
      const { status, body } = await service.refresh(refreshToken);
      expect(status).toBe(200);
      return body;
    },
    /** The status of a request with this access token. */
    live: async (token: string) => (await service.api('/me', token)).status,
  };
}

/** What an application finds in the address that the browser is sent to. */
function sentBack(response: Response): Record<string, string> {
  return Object.fromEntries(new URL(response.headers.get('location') ?? '').searchParams);
}

function expectError({ status, headers, body }: ApiAnswer<object>, expected: number, error: string): void {
  expect(body).toMatchObject({ error, error_description: expect.any(String) });
  expect([status, headers.get('cache-control')]).toEqual([expected, 'no-store']);
}

describe('Endpoints: OAuth routes', () => {
  test('An approval leads back to redirect_uri with a code and the unchanged state', async () => {
    const { service, admin } = await start();
    const form = { teammate_id: admin, decision: 'approve' };
    const response = await service.decide(form, { state: STATE });
    expect(response.status).toBe(303);
    expect(response.headers.get('location')).toMatch(/^http:\/\/localhost:3000\/oauth\/callback\?/);
    expect(sentBack(response)).toEqual({ code: expect.stringMatching(/^[\w-]{20,}$/), state: STATE });
    const redirect_uri = 'http://other.example/back?tenant=a%20b';
    const { client_id } = service.application({ redirect_uris: [redirect_uri] });
    const stateless = await service.decide(form, { client_id, redirect_uri });
    expect(stateless.headers.get('location')).toMatch(/back\?tenant=a%20b&code=[\w-]+$/);
  });

  test('client_id and redirect_uri are those of one application; else nothing redirects', async () => {
    const { service, application, redirect_uri } = await start();
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
        const { status, headers } = await fetch(url, { method, redirect: 'manual' });
        expect([name, values, status, headers.get('location')]).toEqual([name, values, 400, null]);
      }
    }
  });

  test('response_type is code; another one, or none, leads back with an error', async () => {
    const { service } = await start();
    const url = service.authorizeUrl({ response_type: 'token', state: STATE });
    for (const error of ['unsupported_response_type', 'invalid_request']) {
      expect(sentBack(await fetch(url, { redirect: 'manual' }))).toMatchObject({ error, state: STATE });
      url.searchParams.delete('response_type');
    }
  });

  test('A code gives the four members of a token response to its own application alone', async () => {
    const { service, company, application } = await start();
    const other = service.application({ redirect_uris: application.redirect_uris });
    const code = service.code(company);
    const form = { grant_type: 'authorization_code', code, redirect_uri: at(application.redirect_uris, 1) };
    expectError(await service.token(form), 400, 'invalid_grant');
    expectError(await service.exchange(code, other), 400, 'invalid_grant');
    const { status, headers, body } = await service.exchange(code);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    const expires_at = String(Math.floor(START_MS / 1000) + 3600);
    const [access_token, refresh_token] = [expect.any(String), expect.any(String)];
    expect(body).toEqual({ access_token, refresh_token, expires_at, token_type: 'Bearer' });
    expectError(await service.refresh(body.refresh_token, other), 400, 'invalid_grant');
  });
});

describe('Endpoints: OAuth routes (our choice)', () => {
  test('A wrong token request gets the error of RFC 6749, section 5.2', async () => {
    const { service } = await start();
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
      ['{"grant_type":', 'invalid_request', JSON_TYPE],
      ['["refresh_token"]', 'invalid_request', JSON_TYPE],
      ['{"grant_type":"refresh_token","refresh_token":5}', 'invalid_request', JSON_TYPE],
    ] as const) {
      expectError(await service.token(body, undefined, type), 400, error);
    }
    expect((await fetch(`${service.sandbox.authUrl}/oauth/token`)).status).toBe(405);
  });

  test('The token route takes JSON as well as a form; a code lives ten minutes', async () => {
    const { service, company, clock, redirect_uri } = await start();
    const [code, late] = [service.code(company), service.code(company)];
    clock.advance(10 * 60_000 - 1);
    const body = JSON.stringify({ grant_type: 'authorization_code', code, redirect_uri });
    expect((await service.token(body, undefined, `${JSON_TYPE}; charset=utf-8`)).status).toBe(200);
    clock.advance(1);
    expectError(await service.exchange(late), 400, 'invalid_grant');
  });

  test('A code used twice ends the tokens that it gave, and no others', async () => {
    const { service, company, live } = await start();
    const [kept, code] = [service.install(company), service.code(company)];
    const lost = (await service.exchange(code)).body;
    expectError(await service.exchange(code), 400, 'invalid_grant');
    expectError(await service.refresh(lost.refresh_token), 400, 'invalid_grant');
    expect([await live(lost.access_token), await live(kept.access_token)]).toEqual([401, 200]);
  });

  test('A denial leads back with access_denied; an incomplete form gets the page again', async () => {
    const { service, admin } = await start();
    const denied = await service.decide({ decision: 'deny' }, { state: STATE });
    expect(sentBack(denied)).toMatchObject({ error: 'access_denied', state: STATE });
    const [nobody, somebody] = ['teammate_id=tea_nobody', `teammate_id=${admin}`];
    const [approve, perhaps] = ['decision=approve', `decision=perhaps&${somebody}`];
    for (const form of [approve, `${approve}&${nobody}`, somebody, perhaps]) {
      const response = await service.decide(Object.fromEntries(new URLSearchParams(form)));
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
      expect(await response.text()).toMatch(/role="alert">\s*Choose /);
    }
  });

  test('The consent page shows every teammate, escapes all texts, and runs no script', async () => {
    const { service } = await start();
    const attack = '"><script>alert(1)</script>';
    const redirect_uri = `http://other.example/?${attack}`;
    const { client_id } = service.application({ name: attack, redirect_uris: [redirect_uri] });
    const people = service.state().companies.flatMap(({ teammates }) => teammates);
    const response = await fetch(service.authorizeUrl({ client_id, redirect_uri }));
    const html = await response.text();
    expect(html.match(/type="radio" name="teammate_id"/g)).toHaveLength(people.length);
    const admins = people.filter(({ is_admin }) => is_admin);
    expect(html.match(/>Administrator</g)).toHaveLength(admins.length);
    for (const page of [html, await (await fetch(service.authorizeUrl({ client_id: attack }))).text()]) {
      expect([page.includes('&lt;script&gt;'), page.includes('<script>alert')]).toEqual([true, false]);
    }
    const { headers } = response;
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors/);
    expect(headers.get('x-frame-options')).toBe('DENY');
  });
});

describe('States: token lifecycle', () => {
  test('An access token lives 60 minutes, then gets 401, and a refresh gives a new one', async () => {
    const { service, company, clock, refreshed, live } = await start();
    const first = service.install(company);
    clock.advance(HOUR_MS - 1);
    expect(await live(first.access_token)).toBe(200);
    clock.advance(1);
    const refused = await service.api('/me', first.access_token);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="invalid_token"');
    const second = await refreshed(first.refresh_token);
    expect(Number(second.expires_at) - Number(first.expires_at)).toBe(3600);
    expect(await live(second.access_token)).toBe(200);
  });

  test('A refresh in the last 24 hours, and only then, gives a new six-month token', async () => {
    const { service, company, clock, refreshed } = await start();
    const { refresh_token } = service.install(company);
    const rotatedAt = REFRESH_END_MS - 24 * HOUR_MS;
    clock.set(rotatedAt - 1);
    expect((await refreshed(refresh_token)).refresh_token).toBe(refresh_token);
    clock.advance(1);
    const next = (await refreshed(refresh_token)).refresh_token;
    expect(next).not.toBe(refresh_token);
    clock.set(addMonths(rotatedAt, 6) - 1);
    await refreshed(next);
    clock.advance(1);
    expectError(await service.refresh(next), 400, 'invalid_grant');
  });
});

describe('States: token lifecycle (our choice)', () => {
  test('Earlier tokens live on to their end; six months are calendar months in UTC', async () => {
    const { service, company, clock, refreshed, live } = await start();
    clock.set('2026-08-31T12:00:00Z');
    const [{ access_token, refresh_token }] = [service.install(company), service.install(company)];
    await refreshed(refresh_token);
    expect(await live(access_token)).toBe(200);
    clock.set('2027-02-28T11:59:59.999Z');
    await refreshed(refresh_token);
    const again = await refreshed(refresh_token);
    clock.advance(1);
    expectError(await service.refresh(refresh_token), 400, 'invalid_grant');
    expect((await refreshed(again.refresh_token)).refresh_token).toBe(again.refresh_token);
  });
});

/** As RFC 6749, section 2.3.1, has it; the service does not. */
function formEncoded({ client_id, client_secret }: Credentials): string {
  const encode = (value: string) => new URLSearchParams({ value }).toString().slice('value='.length);
  return `Basic ${btoa(`${encode(client_id)}:${encode(client_secret)}`)}`;
}

describe('Authentication', () => {
  test('3. Only an administrator may authorize an application', async () => {
    const { service, company } = await start();
    for (const kind of ['partner', 'automation']) {
      const { client_id, redirect_uris } = service.application({ kind });
      const form = { teammate_id: at(company.teammates, 1).id, decision: 'approve' };
      const response = await service.decide(form, { client_id, redirect_uri: at(redirect_uris, 0) });
      const error_description = expect.stringContaining('administrator');
      expect(sentBack(response)).toEqual({ error: 'access_denied', error_description });
    }
  });

  test('5. The token route takes Basic with id and secret in Base64, not form-encoded', async () => {
    const { service, company, application, redirect_uri } = await start();
    const { client_id, client_secret } = application;
    const odd = service.application({ client_id: 'odd', client_secret: 'odd: s@ndbox+only/100%=~' });
    const code = service.code(company);
    const form = { grant_type: 'authorization_code', code, redirect_uri, client_id, client_secret };
    for (const header of [
      null,
      'Bearer abc',
      basic({ ...application, client_secret: 'wrong' }),
      basic({ ...application, client_id: 'nobody' }),
      `Basic ${client_id}:${client_secret}`,
      `${basic(application)}!`,
      formEncoded(odd),
    ]) {
      const answer = await service.token(form, header);
      expectError(answer, 401, 'invalid_client');
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
    }
    const { body } = await service.token(form, formEncoded(odd));
    expect(body.error_description).toContain('form-encoded');
    const ofOdd = await service.exchange(service.code(company, odd), odd);
    expect(ofOdd.status, 'the first colon parts').toBe(200);
    expect(
      (await service.token({ ...form, code: service.code(company) }, formEncoded(application))).status,
    ).toBe(200);
    expect((await service.exchange(code)).status, 'the code is still good').toBe(200);
  });

  test('6. Basic, a refresh token and an unknown token open nothing of the API', async () => {
    const { service, company, application } = await start();
    const { refresh_token } = service.install(company);
    for (const header of [basic(application), `Bearer ${refresh_token}`, 'Bearer x', 'Bearer', '']) {
      const init = header === '' ? {} : { headers: { authorization: header } };
      const response = await fetch(`${service.sandbox.apiUrl}/me`, init);
      expect([header, response.status]).toEqual([header, 401]);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });
});

describe('Authentication (our choice)', () => {
  test('5. Credentials are given out, or chosen, once; good ones in the body are taken', async () => {
    const { service, company } = await start();
    const given = service.application();
    const form = (application: Credentials, more: object = {}) => ({
      ...{ grant_type: 'authorization_code', code: service.code(company, application), ...more },
      redirect_uri: at(application.redirect_uris, 0),
    });
    expect(given.client_secret).toMatch(/^[\w-]{40,}$/);
    expect((await service.token(form(given), formEncoded(given))).status).toBe(200);
    const secrets = { client_id: 'acme', client_secret: 'a secret: of ours' };
    const chosen = service.application(secrets);
    expect((await service.token(form(chosen, secrets), basic(chosen))).status).toBe(200);
    const other = { client_secret: 'other' };
    expect((await service.token(form(chosen, other), basic(chosen))).status).toBe(400);
    for (const client_id of ['acme', 'a:b']) {
      expect(() => service.application({ client_id })).toThrow(expect.objectContaining({ status: 400 }));
    }
  });

  test('expires_at can be read as text, as a number and as an ISO date', async () => {
    const expected = { string: '1805023815', number: 1805023815, iso: '2027-03-14T11:30:15.000Z' };
    for (const expiresAt of ['string', 'number', 'iso'] as const) {
      const { sandbox } = await startFrozen({ readings: { expiresAt } });
      expect(sandbox.tokens().expires_at).toBe(expected[expiresAt]);
    }
  });
});

describe('kept tokens', () => {
  test('With a file, tokens outlive the sandbox; a reset ends them for good', async () => {
    const tokensFile = join(tempDir(), 'tokens');
    const first = await startSandbox({ tokensFile });
    const { access_token, refresh_token } = first.sandbox.tokens();
    await first.sandbox.close();
    for (const status of [200, 401]) {
      const service = await startSandbox({ tokensFile });
      expect((await service.api('/me', access_token)).status).toBe(status);
      expect((await service.refresh(refresh_token)).status).toBe(status === 200 ? 200 : 400);
      service.sandbox.reset();
      await service.sandbox.close();
    }
  });
});
