import { describe, expect, test } from 'vitest';
import type { AnswerOf } from '../../src/contract/api/api.ts';
import { startOpen } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;

type Conversation = AnswerOf<'getConversation'>;

const named = (documents: readonly { id: string }[]) => documents.map(({ id }) => id);

async function start() {
  const parts = await startOpen({ contacts: 90, conversations: 90 });
  const base = `/knowledge_bases/${at(parts.company.knowledge_bases, 0)}`;
  return { ...parts, base, conversations: await parts.list<Conversation>('/conversations?limit=100') };
}

describe('Resources', () => {
  test('A tag tells its times, links to its child tags, and can get another parent', async () => {
    const { service, company, send, read, list } = await start();
    const [tag, other] = company.tags;
    const { body: child } = await send('POST', `/tags/${tag}/children`, { name: 'Child' });
    expect(child).toMatchObject({ created_at: NOW, updated_at: NOW, parent_tag_id: tag });
    const childrenOf = async (id = '') =>
      list((await read<AnswerOf<'getTag'>>(`/tags/${id}`))._links.children);
    expect(await childrenOf(tag)).toEqual([child]);
    service.advance(5_000);
    const { body: moved } = await send('PATCH', `/tags/${child.id}`, { parent_tag_id: other });
    expect(moved).toEqual({ ...child, parent_tag_id: other, updated_at: NOW + 5 });
    expect([await childrenOf(tag), await childrenOf(other)]).toEqual([[], [moved]]);
  });

  test('The tag of a conversation has the links that every tag has', async () => {
    const { read, conversations } = await start();
    for (const tag of conversations.flatMap(({ tags }) => tags))
      expect(await read(`/tags/${tag.id}`)).toEqual(tag);
  });

  test('An account tells whether it is blocked, and can be blocked', async () => {
    const { company, send } = await start();
    const path = `/accounts/${at(company.accounts, 0)}`;
    for (const change of [{}, { is_blocked: true }, { is_blocked: false }])
      expect((await send('PATCH', path, change)).body).toMatchObject({ is_blocked: false, ...change });
  });

  test('All canned answers are listed, and each can be fetched', async () => {
    const { company, list, read } = await start();
    expect(named(await list('/responses'))).toEqual(company.responses);
    for (const answer of await list('/responses'))
      expect(await read(`/responses/${answer.id}`)).toEqual(answer);
  });

  test('A teammate’s inboxes are those that it can access; to OAuth, the shared ones', async () => {
    const { service, company, list } = await start();
    const [support, sales, own] = await list('/inboxes');
    const teammates = named(company.teammates).map((id) => `/teammates/${id}/inboxes`);
    const lists = await Promise.all(teammates.slice(0, 3).map((path) => list(path)));
    expect(lists).toEqual([[support, sales, own], [support, sales], [support]]);
    const { access_token } = service.install(company);
    expect(await list(at(teammates, 0), access_token)).toEqual([support, sales]);
  });

  test('Knowledge bases and articles have locales, each with a content of its own', async () => {
    const { base, send, read, list } = await start();
    const article = `/knowledge_base_articles/${at(await list(`${base}/articles`), 0).id}`;
    for (const [path, member] of [
      [base, 'name'],
      [article, 'subject'],
    ] as const) {
      const inDefault = [path, `${path}/content`, `${path}/locales/en/content`] as const;
      const before = await read(path);
      expect(before).toMatchObject({ locale: 'en', default_locale: 'en', locales: ['en', 'de'] });
      const { body: german } = await send('PATCH', `${path}/locales/de/content`, { [member]: 'Anders' });
      expect(german).toMatchObject({ [member]: 'Anders', locale: 'de' });
      for (const same of inDefault) expect(await read(same)).toEqual(before);
      const { body: english } = await send('PATCH', `${path}/content`, { [member]: 'Other' });
      for (const same of inDefault) expect(await read(same)).toEqual(english);
      expect(await read(`${path}/locales/de/content`)).toEqual(german);
    }
  });
});

describe('Resources (our choice)', () => {
  test('An account’s contacts are those with a mail address at one of its domains', async () => {
    const { company, send, list } = await start();
    const path = `/accounts/${at(company.accounts, 0)}`;
    await send('PATCH', path, { domains: ['EXAMPLE.org', 'none.example'] });
    const contacts = await list<AnswerOf<'getContact'>>('/contacts?limit=100');
    const ours = contacts.filter(({ handles }) =>
      handles.some(({ handle }) => /@example\.org$/.test(handle)),
    );
    expect(ours.length).toBeGreaterThan(3);
    expect(await list(`${path}/contacts`)).toEqual(ours);
  });

  test('An article may begin in any locale, and be translated later', async () => {
    const { base, send, read } = await start();
    const { body: german } = await send('POST', `${base}/locales/de/articles`, { subject: 'Versand' });
    const path = `/knowledge_base_articles/${german.id}`;
    expect([await read(path), german.locales]).toEqual([german, ['de']]);
    expect((await send('GET', `${path}/content`)).status).toBe(404);
    const { body: english } = await send('PATCH', `${path}/content`, { subject: 'Shipping' });
    expect(english).toMatchObject({ subject: 'Shipping', locale: 'en', locales: ['de', 'en'] });
    expect(await read(path)).toEqual(english);
  });

  test('Reports and exports are ready five seconds later, by the service’s clock', async () => {
    const { service, token, send, read } = await start();
    const { body: report } = await send('POST', '/analytics/reports', { metrics: ['reply_time'] });
    const { body: made } = await send('POST', '/analytics/exports');
    const file = `${made._links.self}/file`;
    const stands: unknown[] = [];
    for (const step of [1, 1_999, 2_999, 1]) {
      service.advance(step);
      const { status, progress, metrics } = await read<AnswerOf<'getReport'>>(report._links.self);
      const { url } = await read<AnswerOf<'getExport'>>(made._links.self);
      const download = await service.api(file, token);
      stands.push([status, progress, typeof at(metrics, 0).value, url, download.status]);
    }
    expect(stands).toEqual([
      ['running', 0, 'object', null, 404],
      ['running', 40, 'object', null, 404],
      ['running', 99, 'object', null, 404],
      ['done', 100, 'number', file, 200],
    ]);
    const { size, filename } = await read<AnswerOf<'getExport'>>(made._links.self);
    const download = await service.api(file, token);
    expect(download.headers.get('content-disposition')).toBe(`attachment; filename="${filename}"`);
    expect((await download.arrayBuffer()).byteLength).toBe(size);
    expect((await fetch(file)).status).toBe(401);
  });
});
