import { expect, test } from 'vitest';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

const STATE = 'a b+c%/ü&=?"<';

function target(response: Response): URL {
  return new URL(response.headers.get('location') ?? '');
}

test('the consent page names the application, and everybody of every company', async () => {
  const service = await startFrozen();
  const { companies } = await service.state();
  const response = await fetch(service.authorizeUrl());
  const html = await response.text();
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain('text/html');
  expect(html).toContain('Partner app asks for access');
  const people = companies.flatMap(({ teammates }) => teammates);
  expect(html.match(/type="radio" name="teammate_id"/g)).toHaveLength(people.length);
  for (const { id, is_admin } of people) {
    const [, shown] = new RegExp(`value="${id}"[\\s\\S]*?class="tag[^>]*>(\\w+)<`).exec(html) ?? [];
    expect(shown).toBe(is_admin ? 'Administrator' : 'Teammate');
  }
});

test('the pages let no script in and no frame around them', async () => {
  const service = await startFrozen();
  for (const url of [
    service.sandbox.origin,
    service.authorizeUrl(),
    service.authorizeUrl({ client_id: 'x' }),
  ]) {
    const { headers } = await fetch(url);
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('x-frame-options')).toBe('DENY');
  }
});

test('approval by an administrator leads back with a code and the state unchanged', async () => {
  const service = await startFrozen();
  const { companies } = await service.state();
  const admin = at(at(companies, 0).teammates, 0);
  const response = await service.decide({ teammate_id: admin.id, decision: 'approve' }, { state: STATE });
  expect(response.status).toBe(303);
  const { origin, pathname, searchParams } = target(response);
  expect(origin + pathname).toBe('http://localhost:3000/oauth/callback');
  expect(searchParams.get('state')).toBe(STATE);
  expect(searchParams.get('code')).toMatch(/^[\w-]{20,}$/);
});

test('no state comes back when none was sent, and the address keeps its own query', async () => {
  const service = await startFrozen();
  const redirect_uri = 'http://other.example/back?tenant=a%20b';
  const { client_id } = await service.application({ redirect_uris: [redirect_uri] });
  const response = await service.decide({ decision: 'deny' }, { client_id, redirect_uri });
  expect(response.headers.get('location')).toMatch(
    /^http:\/\/other\.example\/back\?tenant=a%20b&error=access_denied&/,
  );
  expect(target(response).searchParams.has('state')).toBe(false);
});

test('only an administrator may approve', async () => {
  const service = await startFrozen();
  const { companies } = await service.state();
  const teammate = at(companies, 0).teammates.find(({ is_admin }) => !is_admin);
  const form = { teammate_id: teammate?.id ?? '', decision: 'approve' };
  const { searchParams } = target(await service.decide(form, { state: STATE }));
  expect(searchParams.get('error')).toBe('access_denied');
  expect(searchParams.get('error_description')).toMatch(/administrator/);
  expect(searchParams.get('state')).toBe(STATE);
  expect(searchParams.has('code')).toBe(false);
});

test('any teammate may approve a tool-protocol application', async () => {
  const service = await startFrozen();
  const application = await service.application({ kind: 'tool-protocol' });
  const { companies } = await service.state();
  const teammate = at(companies, 0).teammates.find(({ is_admin }) => !is_admin);
  const parameters = {
    client_id: application.client_id,
    redirect_uri: at(application.redirect_uris, 0),
  };
  const form = { teammate_id: teammate?.id ?? '', decision: 'approve' };
  expect(target(await service.decide(form, parameters)).searchParams.has('code')).toBe(true);
});

test('denial leads back with access_denied and the state, also with nobody chosen', async () => {
  const service = await startFrozen();
  const { searchParams } = target(await service.decide({ decision: 'deny' }, { state: STATE }));
  expect(searchParams.get('error')).toBe('access_denied');
  expect(searchParams.get('state')).toBe(STATE);
});

test.each([
  ['nobody chosen', () => ({ decision: 'approve' })],
  ['a stranger', () => ({ decision: 'approve', teammate_id: 'tea_nobody' })],
  ['no decision', (admin: string) => ({ teammate_id: admin })],
  ['another decision', (admin: string) => ({ decision: 'perhaps', teammate_id: admin })],
])('a form with %s gets the page again', async (_, form: (admin: string) => Record<string, string>) => {
  const service = await startFrozen();
  const { companies } = await service.state();
  const response = await service.decide(form(at(at(companies, 0).teammates, 0).id));
  expect(response.status).toBe(400);
  expect(response.headers.get('location')).toBeNull();
  expect(await response.text()).toMatch(/role="alert">Choose /);
});

test.each([
  ['an unknown client', { client_id: 'nobody' }],
  ['an unregistered address', { redirect_uri: 'http://evil.example/' }],
  [
    'an address that only begins like the registered one',
    { redirect_uri: 'http://localhost:3000/oauth/callback/x' },
  ],
  ['an address in other letters', { redirect_uri: 'HTTP://localhost:3000/oauth/callback' }],
  ['no address', { redirect_uri: '' }],
])('%s never redirects', async (_, parameters) => {
  const service = await startFrozen();
  for (const method of ['GET', 'POST']) {
    const response = await fetch(service.authorizeUrl(parameters), { method, redirect: 'manual' });
    expect(response.status).toBe(400);
    expect(response.headers.get('location')).toBeNull();
  }
});

test('a repeated client_id or redirect_uri never redirects', async () => {
  const service = await startFrozen();
  for (const name of ['client_id', 'redirect_uri']) {
    const url = service.authorizeUrl();
    url.searchParams.append(name, url.searchParams.get(name) ?? '');
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(400);
  }
});

test.each([
  ['token', 'unsupported_response_type'],
  ['', 'unsupported_response_type'],
])('response_type "%s" is told to the application', async (response_type, error) => {
  const service = await startFrozen();
  const response = await fetch(service.authorizeUrl({ response_type, state: STATE }), { redirect: 'manual' });
  expect(response.status).toBe(302);
  expect(target(response).searchParams.get('error')).toBe(error);
  expect(target(response).searchParams.get('state')).toBe(STATE);
});

test('a missing response_type is an invalid_request', async () => {
  const service = await startFrozen();
  const url = service.authorizeUrl({ state: STATE });
  url.searchParams.delete('response_type');
  const { searchParams } = target(await fetch(url, { redirect: 'manual' }));
  expect(searchParams.get('error')).toBe('invalid_request');
  expect(searchParams.get('state')).toBe(STATE);
});

test('what a request says is escaped on the page', async () => {
  const service = await startFrozen();
  const attack = '"><script>alert(1)</script>';
  const refused = await (await fetch(service.authorizeUrl({ client_id: attack }))).text();
  expect(refused).toContain('&lt;script&gt;');
  expect(refused).not.toContain('<script>alert');
  const redirect_uri = `http://other.example/?${attack}`;
  const { client_id } = await service.application({ name: attack, redirect_uris: [redirect_uri] });
  const consent = await (await fetch(service.authorizeUrl({ client_id, redirect_uri }))).text();
  expect(consent).toContain('&lt;script&gt;');
  expect(consent).not.toContain('<script>alert');
});
