import { expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import type { ErrorBody } from '../../src/contract/errors.ts';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  return { service, company, token: at(company.api_tokens, 0).token };
}

function bodyOf(method: string): object | undefined {
  return method === 'GET' ? undefined : {};
}

/** The routes of the specification's tables, word for word (Endpoints). */
const TABLE = `
POST /analytics/reports
POST /analytics/exports
GET /conversations/search/:query
POST /messages/:message_id/seen
POST /links
POST /accounts
PATCH /accounts/:account_id
POST /applications/:application_uid/events
POST /inboxes/:inbox_id/channels
PATCH /knowledge_bases/:kb_id/content
PATCH /knowledge_bases/:kb_id/locales/:locale/content
POST /knowledge_bases/:kb_id/articles
POST /knowledge_bases/:kb_id/locales/:locale/articles
PATCH /knowledge_base_articles/:kba_id/content
PATCH /knowledge_base_articles/:kba_id/locales/:locale/content
PATCH /teammates/:teammate_id
POST /channels/:channel_id/messages
POST /conversations/:conversation_id/messages
POST /channels/:channel_id/incoming_messages
POST /channels/:channel_id/inbound_messages
PUT /channels/:channel_id/conversations/:conv_ext_id/messages/:message_ext_id
POST /channels/:channel_id/outbound_message
POST /inboxes/:inbox_id/imported_messages
PATCH /conversations/:conversation_id
PUT /conversations/:conversation_id/assignee
PATCH /conversations/:conversation_id/reminders
POST /conversations/:conversation_id/tags
DELETE /conversations/:conversation_id/tags
POST /conversations/:conversation_id/links
DELETE /conversations/:conversation_id/links
GET /responses
GET /responses/:response_id
GET /tags/:tag_id/children
POST /tags/:tag_id/children
PATCH /tags/:tag_id
GET /teammates/:teammate_id/inboxes
GET /contacts
GET /conversations`
  .trim()
  .split('\n');

test('every route of the specification’s tables is served, under its own method and path', async () => {
  const specified = ROUTES.filter(([, { source }]) => source === 'specified');
  expect(specified.map(([, { method, path }]) => `${method} ${path}`).toSorted()).toEqual(TABLE.toSorted());
  const { service, token } = await start();
  for (const row of TABLE) {
    const [method = '', pattern = ''] = row.split(' ');
    const path = pattern.replace(/:\w+/g, 'x');
    const { status, body } = await service.call(method, path, token, bodyOf(method));
    expect([row, status === 405 || JSON.stringify(body).includes(`There is no ${path} here`)]).toEqual([
      row,
      false,
    ]);
  }
});

test('every answer of a route is JSON, as the description has it, be it good or an error', async () => {
  const { service, token } = await start();
  const statuses = new Set<number>();
  for (const [operation, { method, path }] of ROUTES) {
    for (const asked of [token, 'nobody']) {
      const url = path.replace(/:\w+/g, 'x');
      const answer = await service.call<Partial<ErrorBody>>(method, url, asked, bodyOf(method));
      expect([operation, answer.headers.get('content-type')]).toEqual([
        operation,
        'application/json; charset=utf-8',
      ]);
      if (answer.status >= 400) expect(answer.body).toMatchObject({ _error: { status: answer.status } });
      statuses.add(answer.status);
    }
  }
  expect([200, 401, 404, 422].filter((status) => !statuses.has(status))).toEqual([]);
});

test('a refresh token that was never renewed ends after six months, and a new authorization starts over', async () => {
  const { service, company } = await start();
  const { refresh_token } = await service.install(company);
  await service.freeze(addMonths(START_MS, 6) - 1);
  const copy = await service.done<{ id: string }>('snapshot', {});
  expect((await service.refresh(refresh_token)).status).toBe(200);
  await service.done('restore', copy);
  await service.advance(1);
  const refused = await service.refresh(refresh_token);
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: 'invalid_grant' }]);
  const again = await service.install(company);
  expect((await service.api('/me', again.access_token)).status).toBe(200);
});

test('what the specification lists as added is there', async () => {
  const { service, company, token } = await start();
  const get = async (path: string) => (await service.call('GET', path, token)).body;
  const [tag, teammate] = [at(company.tags, 0), at(company.teammates, 0).id];
  const response = at(company.responses, 0);
  expect(await get('/responses')).toMatchObject({ _results: expect.any(Array) });
  expect(await get(`/responses/${response}`)).toMatchObject({ id: response });
  expect(await get(`/tags/${tag}/children`)).toMatchObject({ _results: [] });
  expect(await get(`/teammates/${teammate}/inboxes`)).toMatchObject({ _results: expect.any(Array) });
  expect(await get(`/tags/${tag}`)).toMatchObject({
    created_at: expect.any(Number),
    updated_at: expect.any(Number),
  });
  const account = await service.call('POST', '/accounts', token, { name: 'Them' });
  expect(account.body).toMatchObject({ is_blocked: false });
  const channel = at(company.channels, 0);
  const message = { to: ['someone@customer.example'], body: 'Hello' };
  const draft = await service.call('POST', `/channels/${channel}/messages`, token, message);
  expect(draft.body).toMatchObject({ is_draft: true, error_type: null });
  const later = await service.call('POST', `/channels/${channel}/messages`, token, message, {
    prefer: 'respond-async',
  });
  expect([later.status, later.body]).toMatchObject([202, { message_uid: expect.stringMatching(/./) }]);
  expect(later.body).not.toHaveProperty('conversation_reference');
});
