import { expect, test } from 'vitest';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface List {
  _results: { id: string; is_private: boolean; teammate_id?: string | null }[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  const { token: all } = at(company.api_tokens, 0);
  const { access_token: oauth } = await service.install(company);
  return { service, company, all, oauth };
}

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

test('what a tool-protocol token writes has its teammate as author; what a partner’s writes has none', async () => {
  const { service, company, oauth } = await start();
  const application = await service.application({ kind: 'tool-protocol' });
  const teammate = at(company.teammates, 1);
  const { access_token } = await service.install(company, application, teammate.id);
  const conversations = await service.call<List>('GET', '/conversations', oauth);
  const path = `/conversations/${at(conversations.body._results, 0).id}/messages`;
  const authorOf = async (token: string, body: object) =>
    (await service.call('POST', path, token, { body: 'Hello', text: 'Hello', ...body })).body.author;
  expect(await authorOf(access_token, {})).toMatchObject({ id: teammate.id });
  const other = at(company.teammates, 0).id;
  expect(await authorOf(access_token, { author_id: other })).toMatchObject({ id: other });
  expect(await authorOf(oauth, {})).toBeNull();
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
  const inboxes = await service.call<List>('GET', '/inboxes', all);
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
