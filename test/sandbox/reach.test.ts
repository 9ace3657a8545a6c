import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { at, startFrozen } from './support/test-sandbox.ts';

interface Thing {
  id: string;
  is_private: boolean;
  teammate_id?: string | null;
}

interface List {
  _results: Thing[];
}

/** A company with a token for each reach. */
async function start() {
  const service = await startFrozen();
  const company = await service.company({
    plan: 'enterprise',
    contacts: 1,
    api_tokens: [
      { scopes: ['shared_resources'] },
      { scopes: ['knowledge_base'] },
      { scopes: ['shared_resources:read'] },
    ],
  });
  const [all = '', noKnowledgeBase = '', shared = '', knowledgeBase = '', readOnly = ''] =
    company.api_tokens.map(({ token }) => token);
  const { access_token: oauth } = await service.install(company);
  const list = async (path: string, token = all) =>
    (await service.call<List>('GET', path, token)).body._results;
  const ownOf = async (path: string) => (await list(path)).find(({ is_private }) => is_private)?.id ?? '';
  const status = async (method: string, path: string, token: string, body?: object) =>
    (await service.call(method, path, token, body)).status;
  const tokens = { all, noKnowledgeBase, shared, knowledgeBase, readOnly, oauth };
  return { service, company, ...tokens, list, ownOf, status };
}

describe('What the service does', () => {
  test('Each customer authorizes for itself: no token reaches another company', async () => {
    const { service, oauth, all, status } = await start();
    const other = await service.company();
    for (const token of [oauth, all])
      expect(await status('GET', `/tags/${at(other.tags, 0)}`, token)).toBe(404);
    expect(await status('GET', `/knowledge_bases/${at(other.knowledge_bases, 0)}`, all)).toBe(404);
  });
});

describe('Authentication', () => {
  test('9. OAuth tokens reach the tags and inboxes of teams, not a teammate’s own', async () => {
    const { oauth, all, shared, noKnowledgeBase, list, ownOf, status } = await start();
    for (const path of ['/tags', '/inboxes']) {
      const [everything, own] = [await list(path), `${path}/${await ownOf(path)}`];
      const expected = everything.filter(({ is_private }) => !is_private);
      expect(expected.length).toBeLessThan(everything.length);
      for (const token of [oauth, shared]) {
        expect([await list(path, token), await status('GET', own, token)]).toEqual([expected, 403]);
      }
      for (const token of [all, noKnowledgeBase]) expect(await status('GET', own, token)).toBe(200);
    }
  });

  test('9. OAuth tokens change no private tag, and put none below it', async () => {
    const { oauth, list, ownOf, status } = await start();
    const [tag, before] = [await ownOf('/tags'), await list('/tags')];
    expect(await status('PATCH', `/tags/${tag}`, oauth, { name: 'Mine now' })).toBe(403);
    expect(await status('POST', `/tags/${tag}/children`, oauth, { name: 'x' })).toBe(403);
    expect(await list('/tags')).toEqual(before);
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
    const routes = ROUTES.filter(([, { path }]) => path.startsWith('/knowledge_base'));
    expect(routes.length).toBeGreaterThan(6);
    for (const [operation, { method, path, status: good = 200 }] of routes) {
      const address = path.replaceAll(/:(\w+)/g, (_, name) => values[name] ?? '');
      const statuses = [];
      for (const token of [oauth, noKnowledgeBase, all])
        statuses.push(await status(method, address, token, method === 'GET' ? undefined : {}));
      expect([operation, ...statuses]).toEqual([operation, 403, 403, good]);
    }
    expect(await status('GET', `/knowledge_bases/${kb_id}`, knowledgeBase)).toBe(200);
    expect(await status('GET', '/contacts', knowledgeBase)).toBe(403);
  });

  test('9. An application has the scopes that the consent page showed, whatever it asks for', async () => {
    const { service, company, readOnly } = await start();
    const application = await service.application({ scopes: ['shared_resources:read'] });
    const parameters = { client_id: application.client_id, redirect_uri: at(application.redirect_uris, 0) };
    const page = await (await fetch(service.authorizeUrl(parameters))).text();
    expect(page).toContain('See what your teams share: contacts');
    expect(page).toContain('Change anything.');
    const form = { teammate_id: at(company.teammates, 0).id, decision: 'approve', scope: 'shared_resources' };
    const back = await service.decide(form, { ...parameters, scope: 'shared_resources' });
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? '';
    const { access_token } = (await (await service.exchange(code, application)).json()) as {
      access_token: string;
    };
    const changing = ROUTES.filter(([, { method }]) => method !== 'GET');
    expect(changing.length).toBeGreaterThan(20);
    for (const token of [access_token, readOnly]) {
      expect((await service.call('GET', '/contacts', token)).status).toBe(200);
      for (const [operation, { method, path }] of changing) {
        const { status } = await service.call(method, path.replaceAll(/:\w+/g, 'x'), token, {});
        expect([operation, status]).toEqual([operation, 403]);
        await service.advance(3_000);
      }
    }
  });
});

describe('Authentication (our choice)', () => {
  test('The scopes are a closed list, of which OAuth has two', async () => {
    const { service } = await start();
    const application = { name: 'Greedy', redirect_uris: ['http://x.example/'] };
    const company = { name: 'Greedy', plan: 'starter' };
    for (const response of [
      await service.control('applications', { ...application, scopes: ['knowledge_base'] }),
      await service.control('applications', { ...application, scopes: ['shared_resources', 'all'] }),
      await service.control('applications', { ...application, scopes: [] }),
      await service.control('companies', { ...company, api_tokens: [{ scopes: ['everything'] }] }),
      await service.control('companies', { ...company, api_tokens: [{ scopes: [] }] }),
    ]) {
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('scopes')]);
    }
  });

  test('GET /me tells the company behind a token', async () => {
    const { service, company, oauth, all } = await start();
    const { id, name } = company;
    const _links = { self: `${service.sandbox.apiUrl}/me` };
    for (const token of [oauth, all])
      expect((await service.call('GET', '/me', token)).body).toEqual({ _links, id, name });
  });
});
