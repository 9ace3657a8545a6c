import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { at, startFrozen } from './support/test-sandbox.ts';

interface Thing {
  id: string;
  is_private: boolean;
}

/** A company with a token for each reach. */
async function start() {
  const service = await startFrozen();
  const scopes = ['shared_resources', 'knowledge_base', 'shared_resources:read'];
  const api_tokens = scopes.map((scope) => ({ scopes: [scope] }));
  const company = service.company({ plan: 'enterprise', contacts: 1, api_tokens });
  const [all = '', noKnowledgeBase = '', shared = '', knowledgeBase = '', readOnly = ''] =
    company.api_tokens.map(({ token }) => token);
  const oauth = service.install(company).access_token;
  const list = async (path: string, token = all) =>
    (await service.call<{ _results: Thing[] }>('GET', path, token)).body._results;
  const status = async (method: string, path: string, token: string, body?: object) =>
    (await service.call(method, path, token, body)).status;
  const tokens = { all, noKnowledgeBase, shared, knowledgeBase, readOnly, oauth };
  return { service, company, ...tokens, list, status };
}

describe('What the service does', () => {
  test('Each customer authorizes for itself: no token reaches another company', async () => {
    const { service, oauth, all, status } = await start();
    const other = service.company();
    for (const token of [oauth, all])
      expect(await status('GET', `/tags/${at(other.tags, 0)}`, token)).toBe(404);
    expect(await status('GET', `/knowledge_bases/${at(other.knowledge_bases, 0)}`, all)).toBe(404);
  });
});

describe('Authentication', () => {
  test('9. OAuth tokens reach the tags and inboxes of teams, not a teammate’s own', async () => {
    const { oauth, all, shared, noKnowledgeBase, list, status } = await start();
    for (const path of ['/tags', '/inboxes']) {
      const everything = await list(path);
      const own = `${path}/${everything.find(({ is_private }) => is_private)?.id}`;
      const expected = everything.filter(({ is_private }) => !is_private);
      for (const token of [oauth, shared]) {
        expect([await list(path, token), await status('GET', own, token)]).toEqual([expected, 403]);
        if (path === '/inboxes') continue;
        expect(await status('PATCH', own, token, { name: 'Mine now' })).toBe(403);
        expect(await status('POST', `${own}/children`, token, { name: 'x' })).toBe(403);
      }
      for (const token of [all, noKnowledgeBase]) expect(await status('GET', own, token)).toBe(200);
      expect(await list(path)).toEqual(everything);
    }
  });

  test('9. OAuth tokens neither see nor change a teammate’s signature', async () => {
    const { service, company, oauth, all, shared, status } = await start();
    const path = `/teammates/${at(company.teammates, 1).id}`;
    const { signature, ...rest } = (await service.call('GET', path, all)).body;
    expect(signature).toMatch(/<p>/);
    for (const token of [oauth, shared]) {
      expect((await service.call('GET', path, token)).body).toEqual(rest);
      expect(await status('PATCH', path, token, { signature: 'Me' })).toBe(403);
    }
    expect((await service.call('PATCH', path, all, { signature: 'Me' })).body.signature).toBe('Me');
  });

  test('9. Knowledge bases take an API token with their scope, which opens nothing else', async () => {
    const { company, oauth, knowledgeBase, all, noKnowledgeBase, list, status } = await start();
    const kb_id = at(company.knowledge_bases, 0);
    const kba_id = at(await list(`/knowledge_bases/${kb_id}/articles`), 0).id;
    const values: Record<string, string> = { kb_id, kba_id, locale: 'de' };
    for (const [operation, { method, path, status: good = 200 }] of ROUTES) {
      if (!path.startsWith('/knowledge_base')) continue;
      const address = path.replaceAll(/:(\w+)/g, (_, name) => values[name] ?? '');
      const statuses = [];
      for (const token of [oauth, noKnowledgeBase, all])
        statuses.push(await status(method, address, token, method === 'GET' ? undefined : {}));
      expect([operation, ...statuses]).toEqual([operation, 403, 403, good]);
    }
    expect(await status('GET', `/knowledge_bases/${kb_id}`, knowledgeBase)).toBe(200);
    expect(await status('GET', '/contacts', knowledgeBase)).toBe(403);
  });

  test('9. An application has the scopes that the consent page showed, and no more', async () => {
    const { service, company, readOnly } = await start();
    const application = service.application({ scopes: ['shared_resources:read'] });
    const query = { client_id: application.client_id, redirect_uri: at(application.redirect_uris, 0) };
    const page = await (await fetch(service.authorizeUrl(query))).text();
    expect(page).toMatch(/See what your teams share: contacts[\s\S]*Change anything\./);
    const form = { teammate_id: at(company.teammates, 0).id, decision: 'approve', scope: 'shared_resources' };
    const back = await service.decide(form, { ...query, scope: 'shared_resources' });
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? '';
    const { access_token } = (await service.exchange(code, application)).body;
    for (const token of [access_token, readOnly]) {
      for (const [operation, { method, path }] of ROUTES) {
        if (method === 'GET' && path !== '/contacts') continue;
        const { status } = await service.call(method, path.replaceAll(/:\w+/g, 'x'), token);
        expect([operation, status]).toEqual([operation, method === 'GET' ? 200 : 403]);
        service.advance(3_000);
      }
    }
  });
});

describe('Authentication (our choice)', () => {
  test('The scopes are a closed list, of which OAuth has two', async () => {
    const { service } = await start();
    for (const scopes of [['knowledge_base'], ['shared_resources', 'all'], []])
      expect(() => service.application({ scopes })).toThrow(/scopes/);
    for (const scopes of [['everything'], []])
      expect(() => service.company({ api_tokens: [{ scopes }] })).toThrow(/scopes/);
  });

  test('GET /me tells the company behind a token', async () => {
    const { service, company, oauth, all } = await start();
    const { id, name } = company;
    const _links = { self: `${service.sandbox.apiUrl}/me` };
    for (const token of [oauth, all])
      expect((await service.call('GET', '/me', token)).body).toEqual({ _links, id, name });
  });
});
