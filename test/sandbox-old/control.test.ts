import { expect, test } from 'vitest';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { SANDBOX_DEFAULTS } from '../../src/contract/sandbox.ts';
import { at, START_MS, startFrozen, startSandbox } from '../sandbox/support/test-sandbox.ts';

test('the state tells addresses, credentials and companies', async () => {
  const service = await startSandbox({ redirectUris: ['http://app.example/oauth/callback'] });
  const { origin, apiUrl, authUrl, application } = service.sandbox;
  const state = await service.state();
  expect(state).toMatchObject({ frozen: false, api_url: `${origin}/api`, auth_url: `${origin}/auth` });
  expect([apiUrl, authUrl]).toEqual([state.api_url, state.auth_url]);
  expect(state.applications).toEqual([
    { name: 'Partner app', kind: 'partner', scopes: ['shared_resources'], ...application },
  ]);
  expect(application).toEqual({
    client_id: SANDBOX_DEFAULTS.clientId,
    client_secret: SANDBOX_DEFAULTS.clientSecret,
    redirect_uris: [
      'http://app.example/oauth/callback',
      'http://localhost:3000/oauth/callback',
      'http://127.0.0.1:3000/oauth/callback',
    ],
  });
  expect(state.companies.map(({ plan }) => plan)).toEqual(['starter', 'professional', 'enterprise']);
});

test('the companies at start are the same in every sandbox', async () => {
  const [one, two] = [await startSandbox(), await startSandbox()];
  expect((await one.state()).companies).toEqual((await two.state()).companies);
});

test('a company has everything that the service’s routes need', async () => {
  const service = await startFrozen();
  const company = await service.company({
    name: 'Ünïcode 🐧',
    plan: 'professional',
    contacts: 7,
    conversations: 9,
  });
  expect(company).toMatchObject({
    name: 'Ünïcode 🐧',
    plan: 'professional',
    counts: { contacts: 7, conversations: 9 },
  });
  expect(company.id).toMatch(/^cmp_/);
  expect(company.teammates.filter(({ is_admin }) => is_admin).length).toBeGreaterThan(0);
  expect(company.teammates.filter(({ is_admin }) => !is_admin).length).toBeGreaterThan(0);
  expect(company.api_tokens).toHaveLength(2);
  expect(company.api_tokens.filter(({ scopes }) => scopes.includes('knowledge_base'))).toHaveLength(1);
  expect(company.inboxes).toHaveLength(3);
  for (const ids of [company.tags, company.channels, company.responses, company.knowledge_bases]) {
    expect(ids.length).toBeGreaterThan(0);
    expect(ids.every((id) => typeof id === 'string')).toBe(true);
  }
  const { companies } = await service.state();
  expect(companies.find(({ id }) => id === company.id)).toEqual(company);
});

test.each([
  {},
  { name: 'X' },
  { name: '', plan: 'starter' },
  { name: 'X', plan: 'gold' },
  { name: 'X', plan: 'starter', contacts: -1 },
  { name: 'X', plan: 'starter', contacts: 1.5 },
  { name: 'X', plan: 'starter', conversations: '5' },
  { name: 'X', plan: 'enterprise', addon_rpm: -1 },
  { name: 'X', plan: 'starter', contact: 5 },
])('refuses the company %j', async (body) => {
  const service = await startFrozen();
  const response = await service.control('companies', body);
  expect(response.status).toBe(400);
  expect((await response.json()) as ErrorBody).toMatchObject({ _error: { status: 400 } });
  expect((await service.state()).companies).toHaveLength(3);
});

test('an application gets credentials that work', async () => {
  const service = await startFrozen();
  const application = await service.application({ kind: 'automation' });
  expect(application).toMatchObject({ name: 'Other app', kind: 'automation' });
  const { access_token } = await service.install(at((await service.state()).companies, 0), application);
  expect((await service.api('/me', access_token)).status).toBe(200);
});

test.each([
  {},
  { name: 'X', redirect_uris: [] },
  { name: 'X', redirect_uris: ['/callback'] },
  { name: 'X', redirect_uris: ['http://x.example/#part'] },
  { name: 'X', redirect_uris: ['javascript:alert(1)'] },
  { name: 'X', redirect_uris: ['http://x.example/漢'] },
  { name: 'X', redirect_uris: ['http://x.example/a\r\nX-Y: z'] },
  { name: 'X', redirect_uris: [' http://x.example/'] },
  { name: 'X', redirect_uris: ['http://x.example/'], kind: 'robot' },
])('refuses the application %j', async (body) => {
  const service = await startFrozen();
  expect((await service.control('applications', body)).status).toBe(400);
});

test('a POST must be JSON', async () => {
  const service = await startFrozen();
  const url = `${service.sandbox.origin}/_sandbox/clock`;
  const bodies = [new URLSearchParams({ advance_ms: '5' }), '{"advance_ms":5}', new FormData()];
  for (const body of bodies) {
    const response = await fetch(url, { method: 'POST', body });
    expect(response.status).toBe(415);
    expect((await response.json()) as ErrorBody).toMatchObject({ _error: { status: 415 } });
  }
  const broken = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"advance_ms":',
  });
  expect(broken.status).toBe(400);
  expect((await service.state()).now).toBe(START_MS);
});

test('a body that is too long is refused', async () => {
  const service = await startFrozen();
  const response = await service.control('companies', { name: 'x'.repeat(2 ** 21), plan: 'starter' });
  expect(response.status).toBe(413);
});

test('unknown routes and methods are 404 and 405', async () => {
  const service = await startFrozen();
  expect((await service.control('nothing', {})).status).toBe(404);
  expect((await fetch(`${service.sandbox.origin}/nothing`)).status).toBe(404);
  const response = await fetch(`${service.sandbox.origin}/_sandbox/state`, { method: 'PUT' });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
});

test('reset leads back to the state at start, at once', async () => {
  const service = await startSandbox();
  const { now: _, ...before } = await service.state();
  const company = await service.company({ contacts: 1_000_000 });
  await service.application();
  const { access_token, refresh_token } = await service.install(company);
  await service.api('/me', access_token);
  await service.control('faults', { fault: { status: 500 }, times: 5 });
  await service.freeze();
  const startedAt = performance.now();
  await service.done('reset', {});
  expect(performance.now() - startedAt).toBeLessThan(100);
  const { now, ...after } = await service.state();
  expect(after).toEqual(before);
  expect(Math.abs(now - Date.now())).toBeLessThan(5_000);
  expect(await service.journal()).toEqual([]);
  expect((await service.api('/me', access_token)).status).toBe(401);
  expect((await service.refresh(refresh_token)).status).toBe(400);
});

test('a sandbox stops at once, with a connection open', async () => {
  const service = await startSandbox({ latencyMs: 60_000 });
  const { token } = at(at((await service.state()).companies, 0).api_tokens, 0);
  const pending = service.api('/me', token).catch((error: Error) => error.message);
  while ((await service.state()).limits.length === 0);
  await service.sandbox.close();
  expect(await pending).toBe('fetch failed');
});

test('only addresses of this machine are listened on', async () => {
  await expect(startSandbox({ host: '0.0.0.0' })).rejects.toThrow(/this machine/);
});
