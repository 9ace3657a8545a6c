import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { at, startFrozen } from './test-sandbox.ts';

interface Thing {
  id: string;
  name: string;
  is_private: boolean;
}

interface List {
  _results: Thing[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({
    plan: 'enterprise',
    api_tokens: [
      { scopes: ['shared_resources'] },
      { scopes: ['shared_resources:read'] },
      { scopes: ['knowledge_base'] },
    ],
  });
  const [all = '', noKnowledgeBase = '', shared = '', readOnly = '', knowledgeBase = ''] =
    company.api_tokens.map(({ token }) => token);
  const { access_token: oauth } = await service.install(company);
  return { service, company, oauth, all, noKnowledgeBase, shared, readOnly, knowledgeBase };
}

const PRIVATE = ['/tags', '/inboxes'];

test.each(PRIVATE)(
  'of %s, an OAuth token lists what is shared, an API token with the scope all',
  async (path) => {
    const { service, oauth, all, shared } = await start();
    const read = async (token: string) => (await service.call<List>('GET', path, token)).body._results;
    const everything = await read(all);
    expect(everything.some(({ is_private }) => is_private)).toBe(true);
    const expected = everything.filter(({ is_private }) => !is_private);
    expect(expected.length).toBeGreaterThan(0);
    expect(await read(oauth)).toEqual(expected);
    expect(await read(shared)).toEqual(expected);
  },
);

test.each(PRIVATE)(
  'one private thing of %s is 403 for an OAuth token, and open to an API token',
  async (path) => {
    const { service, oauth, all, shared, noKnowledgeBase } = await start();
    const list = await service.call<List>('GET', path, all);
    const own = list.body._results.find(({ is_private }) => is_private);
    const statusOf = async (token: string) => (await service.call('GET', `${path}/${own?.id}`, token)).status;
    expect(await statusOf(oauth)).toBe(403);
    expect(await statusOf(shared)).toBe(403);
    expect(await statusOf(noKnowledgeBase)).toBe(200);
    expect(await statusOf(all)).toBe(200);
  },
);

test('a teammate’s signature is shown to an API token with the scope, and to no OAuth token, and changed so', async () => {
  const { service, company, oauth, all, shared } = await start();
  const path = `/teammates/${at(company.teammates, 1).id}`;
  const { signature, ...rest } = (await service.call('GET', path, all)).body;
  expect(signature).toMatch(/<p>/);
  for (const token of [oauth, shared]) {
    expect((await service.call('GET', path, token)).body).toEqual(rest);
    expect((await service.call('PATCH', path, token, { signature: 'Me' })).status).toBe(403);
  }
  expect((await service.call('PATCH', path, all, { signature: 'Me' })).body).toMatchObject({
    signature: 'Me',
  });
});

test('a private tag can neither be changed nor be given a child by an OAuth token', async () => {
  const { service, oauth, all } = await start();
  const { body } = await service.call<List>('GET', '/tags', all);
  const own = body._results.find(({ is_private }) => is_private);
  const path = `/tags/${own?.id}`;
  const changed = await service.call('PATCH', path, oauth, { name: 'Mine now' });
  expect(changed.status).toBe(403);
  expect(changed.body).toMatchObject({
    _error: { status: 403, message: expect.stringContaining('private') },
  });
  expect((await service.call('POST', `${path}/children`, oauth, { name: 'x' })).status).toBe(403);
  expect((await service.call('GET', path, all)).body).toEqual(own);
});

const KNOWLEDGE_BASE_ROUTES = ROUTES.filter(([, { path }]) => path.startsWith('/knowledge_base'));

test('no knowledge base route is in reach of an OAuth token, nor of an API token without the scope', async () => {
  const { service, company, oauth, all, noKnowledgeBase } = await start();
  const kb_id = at(company.knowledge_bases, 0);
  const articles = await service.call<List>('GET', `/knowledge_bases/${kb_id}/articles`, all);
  const values: Record<string, string> = { kb_id, kba_id: at(articles.body._results, 0).id, locale: 'de' };
  expect(KNOWLEDGE_BASE_ROUTES.length).toBeGreaterThan(6);
  for (const [operation, { method, path, status = 200 }] of KNOWLEDGE_BASE_ROUTES) {
    const address = path.replaceAll(/:(\w+)/g, (_, name) => values[name] ?? '');
    const body = method === 'GET' ? undefined : {};
    const statuses = [];
    for (const token of [oauth, noKnowledgeBase, all]) {
      statuses.push((await service.call(method, address, token, body)).status);
    }
    expect([operation, ...statuses]).toEqual([operation, 403, 403, status]);
  }
});

test('the scope for knowledge bases alone opens nothing else', async () => {
  const { service, company, knowledgeBase } = await start();
  const base = `/knowledge_bases/${at(company.knowledge_bases, 0)}`;
  expect((await service.call('GET', base, knowledgeBase)).status).toBe(200);
  expect((await service.call('GET', '/contacts', knowledgeBase)).status).toBe(403);
});

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

test('tokens of other scopes are refused when a company is added', async () => {
  const { service } = await start();
  for (const api_tokens of [[{ scopes: ['everything'] }], [{ scopes: [] }], [{}]]) {
    const response = await service.control('companies', { name: 'X', plan: 'starter', api_tokens });
    expect(response.status).toBe(400);
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
  const { tokens } = (await service.state()) as unknown as {
    tokens: { application: string; scopes: string[] }[];
  };
  const own = tokens.filter((token) => token.application === application.client_id);
  expect(own.map(({ scopes }) => scopes)).toEqual([['shared_resources:read'], ['shared_resources:read']]);
});

test('no token reaches another company', async () => {
  const { service, oauth, all } = await start();
  const other = await service.company();
  for (const token of [oauth, all]) {
    expect((await service.call('GET', `/tags/${at(other.tags, 0)}`, token)).status).toBe(404);
  }
  const base = `/knowledge_bases/${at(other.knowledge_bases, 0)}`;
  expect((await service.call('GET', base, all)).status).toBe(404);
});

test('a tool-protocol application’s token acts for the teammate who authorized it, and for that one alone', async () => {
  const { service, company } = await start();
  const application = await service.application({ kind: 'tool-protocol' });
  const people = company.teammates.slice(0, 2);
  expect(people.map(({ is_admin }) => is_admin)).toEqual([true, false]);
  for (const { id, name } of people) {
    const { access_token } = await service.install(company, application, id);
    const { body } = await service.call('GET', '/me', access_token);
    expect(body).toMatchObject({ id: company.id, teammate: { id, name } });
  }
});

test('any other token acts for the company', async () => {
  const { service, oauth, all } = await start();
  const automation = await service.application({ kind: 'automation' });
  const { access_token } = await service.install(at((await service.state()).companies, 0), automation);
  for (const token of [oauth, all, access_token]) {
    expect((await service.call('GET', '/me', token)).body).not.toHaveProperty('teammate');
  }
});

test('a tool-protocol token reaches what is shared, and not even its own teammate’s private resources', async () => {
  const { service, company, all } = await start();
  const application = await service.application({ kind: 'tool-protocol' });
  const inboxes = await service.call<{ _results: (Thing & { teammate_id: string | null })[] }>(
    'GET',
    '/inboxes',
    all,
  );
  const own = inboxes.body._results.find(({ is_private }) => is_private);
  const { access_token } = await service.install(company, application, own?.teammate_id ?? '');
  const statusOf = async (path: string) => (await service.call('GET', path, access_token)).status;
  expect(await statusOf('/contacts')).toBe(200);
  expect(await statusOf(`/inboxes/${own?.id}`)).toBe(403);
  expect(await statusOf(`/knowledge_bases/${at(company.knowledge_bases, 0)}`)).toBe(403);
});

test('tokens of two teammates for one tool-protocol application share the company’s partner limit', async () => {
  const { service, company } = await start();
  const application = await service.application({ kind: 'tool-protocol' });
  const remaining: (string | null)[] = [];
  for (const { id } of company.teammates.slice(0, 2)) {
    const { access_token } = await service.install(company, application, id);
    const { headers } = await service.call('GET', '/me', access_token);
    remaining.push(headers.get('x-ratelimit-remaining'));
  }
  expect(remaining).toEqual(['119', '118']);
});

test('the consent page tells a teammate that a tool-protocol application acts in the own name', async () => {
  const { service } = await start();
  const { client_id, redirect_uris } = await service.application({ kind: 'tool-protocol' });
  const html = await (
    await fetch(service.authorizeUrl({ client_id, redirect_uri: at(redirect_uris, 0) }))
  ).text();
  expect(html).toContain('Any teammate may allow this application.');
  expect(html).toContain('in your name');
});

test('teammates who are no administrators authorize no application of another kind', async () => {
  const { service, company } = await start();
  const teammate = company.teammates.find(({ is_admin }) => !is_admin);
  for (const kind of ['partner', 'automation']) {
    const { client_id, redirect_uris } = await service.application({ kind });
    const form = { teammate_id: teammate?.id ?? '', decision: 'approve' };
    const response = await service.decide(form, { client_id, redirect_uri: at(redirect_uris, 0) });
    const { searchParams } = new URL(response.headers.get('location') ?? '');
    expect([searchParams.get('error'), searchParams.get('code')]).toEqual(['access_denied', null]);
  }
});
