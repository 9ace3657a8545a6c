import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

async function start() {
  const service = await startFrozen();
  const company = await service.company({ api_tokens: [{ scopes: ['shared_resources:read'] }] });
  const [all = '', , readOnly = ''] = company.api_tokens.map(({ token }) => token);
  return { service, company, all, readOnly };
}

test('an application that asked to read alone may read what is shared, and gets 403 for every change', async () => {
  const { service, company, all, readOnly } = await start();
  const application = await service.application({ scopes: ['shared_resources:read'] });
  const { access_token, refresh_token } = await service.install(company, application);
  const refreshed = (await (await service.refresh(refresh_token, application)).json()) as {
    access_token: string;
  };
  const tag = `/tags/${at(company.tags, 0)}`;
  const before = (await service.call('GET', tag, all)).body;
  for (const token of [access_token, refreshed.access_token, readOnly]) {
    expect((await service.call('GET', tag, token)).body).toEqual(before);
    const { status, body } = await service.call('PATCH', tag, token, { name: 'Changed' });
    expect(status).toBe(403);
    expect(body).toMatchObject({ _error: { status: 403, message: expect.stringContaining(':read') } });
    expect((await service.call('POST', `${tag}/children`, token, { name: 'x' })).status).toBe(403);
  }
  expect((await service.call('GET', tag, all)).body).toEqual(before);
});

test('every route that changes something is 403 for an application that asked to read alone', async () => {
  const { service, company } = await start();
  const application = await service.application({ scopes: ['shared_resources:read'] });
  const { access_token } = await service.install(company, application);
  const changing = ROUTES.filter(([, { method }]) => method !== 'GET');
  expect(changing.length).toBeGreaterThan(20);
  for (const [operation, { method, path }] of changing) {
    const { status } = await service.call(method, path.replaceAll(/:\w+/g, 'x'), access_token, {});
    expect([operation, status]).toEqual([operation, 403]);
    await service.advance(3_000);
  }
});

test('an application cannot be set up for what OAuth tokens do not reach', async () => {
  const { service } = await start();
  for (const scopes of [['knowledge_base'], ['private_resources'], ['shared_resources', 'all'], []]) {
    const response = await service.control('applications', {
      name: 'Greedy',
      redirect_uris: ['http://greedy.example/'],
      scopes,
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/scopes/);
  }
});

test('the consent page says in plain words what is asked for, and what stays out of reach', async () => {
  const { service } = await start();
  const application = await service.application({ scopes: ['shared_resources:read'] });
  const pageOf = async ({ client_id, redirect_uris }: typeof application) =>
    (await fetch(service.authorizeUrl({ client_id, redirect_uri: at(redirect_uris, 0) }))).text();
  const readOnly = await pageOf(application);
  expect(readOnly).toContain('See what your teams share: contacts');
  expect(readOnly).toContain('<li>Change anything.</li>');
  expect(readOnly).not.toContain('See and change');
  const full = await pageOf(service.sandbox.application);
  expect(full).toContain('See and change what your teams share: contacts');
  expect(full).not.toContain('Change anything.');
  for (const html of [readOnly, full]) {
    expect(html).toContain('individual inboxes, tags and signatures');
    expect(html).toContain('Reach your knowledge bases.');
    expect(html).not.toContain('in your name');
  }
});

test('a grant keeps the scopes that were shown, whatever the authorization request says', async () => {
  const { service, company } = await start();
  const application = await service.application({ scopes: ['shared_resources:read'] });
  const admin = company.teammates.find(({ is_admin }) => is_admin);
  const response = await service.decide(
    { teammate_id: admin?.id ?? '', decision: 'approve', scope: 'shared_resources knowledge_base' },
    {
      client_id: application.client_id,
      redirect_uri: at(application.redirect_uris, 0),
      scope: 'shared_resources knowledge_base',
    },
  );
  const code = new URL(response.headers.get('location') ?? '').searchParams.get('code') ?? '';
  const { access_token } = (await (await service.exchange(code, application)).json()) as {
    access_token: string;
  };
  const tag = `/tags/${at(company.tags, 0)}`;
  expect((await service.call('PATCH', tag, access_token, { name: 'x' })).status).toBe(403);
  const { tokens } = await service.state();
  const own = tokens.filter((token) => token.application === application.client_id);
  expect(own.map(({ scopes }) => scopes)).toEqual([['shared_resources:read'], ['shared_resources:read']]);
});
