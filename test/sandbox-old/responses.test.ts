import { expect, test } from 'vitest';
import { at, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface CannedAnswer {
  _links: { self: string };
  id: string;
  name: string;
  body: string;
  is_available_for_all_inboxes: boolean;
  inbox_ids: string[];
}

interface List {
  _pagination: { next: string | null };
  _results: CannedAnswer[];
}

async function start() {
  const service = await startFrozen();
  const company = await service.company();
  const token = at(company.api_tokens, 0).token;
  const list = await service.call<List>('GET', '/responses', token);
  return { service, company, token, answers: list.body._results };
}

test('all canned answers are listed, and each is fetched alone', async () => {
  const { service, company, token, answers } = await start();
  expect(answers.map(({ id }) => id)).toEqual(company.responses);
  expect(answers.length).toBeGreaterThan(1);
  for (const answer of answers) {
    const { status, body } = await service.call('GET', `/responses/${answer.id}`, token);
    expect(status).toBe(200);
    expect(body).toEqual(answer);
    expect(answer._links.self).toBe(`${service.sandbox.apiUrl}/responses/${answer.id}`);
    expect(answer.body).toMatch(/^<p>/);
  }
});

test('a canned answer is for all inboxes, or for those that it names', async () => {
  const { company, answers } = await start();
  for (const answer of answers) {
    expect(answer.inbox_ids.length > 0).toBe(!answer.is_available_for_all_inboxes);
    for (const inbox of answer.inbox_ids) expect(company.inboxes).toContain(inbox);
  }
  expect(new Set(answers.map((answer) => answer.is_available_for_all_inboxes)).size).toBe(2);
});

test('canned answers come in pages', async () => {
  const { service, token, answers } = await start();
  const read: CannedAnswer[] = [];
  let next: string | null = '/responses?limit=1';
  while (next !== null) {
    const { body }: { body: List } = await service.call<List>('GET', next, token);
    expect(body._results.length).toBeLessThanOrEqual(1);
    read.push(...body._results);
    next = body._pagination.next;
  }
  expect(read).toEqual(answers);
});

test('OAuth tokens reach canned answers', async () => {
  const { service, company, answers } = await start();
  const { access_token } = await service.install(company);
  const { body } = await service.call<List>('GET', '/responses', access_token);
  expect(body._results).toEqual(answers);
});

test('unknown and foreign canned answers are 404, other methods 405', async () => {
  const { service, company, token } = await start();
  const other = await service.company();
  for (const id of ['rsp_none', at(other.responses, 0), at(company.tags, 0)]) {
    const { status, body } = await service.call('GET', `/responses/${id}`, token);
    expect(status).toBe(404);
    expect(body).toMatchObject({ _error: { status: 404, title: 'Not Found' } });
  }
  const { status, headers } = await service.call('POST', '/responses', token, {});
  expect([status, headers.get('allow')]).toEqual([405, 'GET']);
  expect((await service.call('PATCH', `/responses/${at(company.responses, 0)}`, token, {})).status).toBe(405);
});
