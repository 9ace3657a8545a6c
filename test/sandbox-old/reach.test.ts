import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

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
    api_tokens: [{ scopes: ['shared_resources'] }, { scopes: ['knowledge_base'] }],
  });
  const [all = '', noKnowledgeBase = '', shared = '', knowledgeBase = ''] = company.api_tokens.map(
    ({ token }) => token,
  );
  const { access_token: oauth } = await service.install(company);
  return { service, company, oauth, all, noKnowledgeBase, shared, knowledgeBase };
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

test('what is in a private inbox is private: channels, conversations and their messages', async () => {
  const { service, oauth, all, shared } = await start();
  const { body } = await service.call<List>('GET', '/inboxes', all);
  const inbox = body._results.find(({ is_private }) => is_private)?.id;
  const channel = await service.call('POST', `/inboxes/${inbox}/channels`, all, { type: 'custom' });
  const message = { to: ['ada@example.com'], body: 'Hello', text: 'Hello' };
  const sent = await service.call('POST', `/channels/${channel.body.id}/messages`, all, message);
  const draft = await service.call('GET', `/messages/${sent.body.id}`, all);
  const conversation = `/conversations/${draft.body.conversation_id}`;
  expect([channel.status, sent.status, draft.status]).toEqual([201, 201, 200]);
  const reads = [
    `/inboxes/${inbox}/channels`,
    `/channels/${channel.body.id}`,
    conversation,
    `${conversation}/messages`,
    `/messages/${sent.body.id}`,
  ];
  for (const path of reads) {
    const statuses = [];
    for (const token of [oauth, shared, all]) statuses.push((await service.call('GET', path, token)).status);
    expect([path, ...statuses]).toEqual([path, 403, 403, 200]);
  }
  const write = async (method: string, path: string, body: object) =>
    (await service.call(method, path, oauth, body)).status;
  expect(await write('POST', `/inboxes/${inbox}/channels`, { type: 'custom' })).toBe(403);
  expect(await write('POST', `/channels/${channel.body.id}/messages`, message)).toBe(403);
  expect(await write('POST', `${conversation}/messages`, message)).toBe(403);
  expect(await write('PATCH', conversation, { status: 'archived' })).toBe(403);
  const channels = await service.call<List>('GET', '/channels', oauth);
  expect(channels.body._results.map(({ id }) => id)).not.toContain(channel.body.id);
});

test('an OAuth token can put no private tag on a conversation, nor move one into a private inbox', async () => {
  const { service, oauth, all } = await start();
  const read = async (path: string) => (await service.call<List>('GET', path, all)).body._results;
  const [tag, inbox] = [await read('/tags'), await read('/inboxes')].map(
    (things) => things.find(({ is_private }) => is_private)?.id,
  );
  const conversation = `/conversations/${at(await read('/conversations'), 0).id}`;
  const before = (await service.call('GET', conversation, all)).body;
  expect((await service.call('POST', `${conversation}/tags`, oauth, { tag_ids: [tag] })).status).toBe(403);
  expect((await service.call('PATCH', conversation, oauth, { inbox_id: inbox })).status).toBe(403);
  expect((await service.call('GET', conversation, all)).body).toEqual(before);
});

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

test('tokens of other scopes are refused when a company is added', async () => {
  const { service } = await start();
  for (const api_tokens of [[{ scopes: ['everything'] }], [{ scopes: [] }], [{}]]) {
    const response = await service.control('companies', { name: 'X', plan: 'starter', api_tokens });
    expect(response.status).toBe(400);
  }
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
