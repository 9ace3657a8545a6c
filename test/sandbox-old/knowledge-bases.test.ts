import { expect, test } from 'vitest';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

interface Article {
  _links: { self: string; content: string; knowledge_base: string };
  id: string;
  knowledge_base_id: string;
  locale: string;
  locales: string[];
  subject: string;
  status: string;
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({ plan: 'enterprise' });
  const token = at(company.api_tokens, 0).token;
  const call = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    service.call<T>(method, path, token, body);
  return { service, company, token, call, base: `/knowledge_bases/${at(company.knowledge_bases, 0)}` };
}

type Call = Awaited<ReturnType<typeof start>>['call'];

async function firstArticle(call: Call, base: string): Promise<Article> {
  return at((await call<{ _results: Article[] }>('GET', `${base}/articles`)).body._results, 0);
}

test('at start there is a knowledge base in two locales, with articles', async () => {
  const { call, base } = await start();
  const { body } = await call('GET', base);
  expect(body).toMatchObject({
    name: 'Help centre',
    locale: 'en',
    default_locale: 'en',
    locales: ['en', 'de'],
  });
  const list = await call<{ _results: unknown[] }>('GET', '/knowledge_bases');
  expect(list.body._results).toEqual([body]);
  const article = await firstArticle(call, base);
  expect(article).toMatchObject({ subject: 'Getting started', status: 'published', locales: ['en', 'de'] });
  expect((await call('GET', article._links.self)).body).toEqual(article);
  expect((await call('GET', article._links.content)).body).toEqual(article);
  expect((await call('GET', article._links.knowledge_base)).body).toEqual(body);
});

test('without a locale the default one is changed and read, and the other stays as it was', async () => {
  const { service, call, base } = await start();
  const german = (await call('GET', `${base}/locales/de/content`)).body;
  await service.advance(7_000);
  const sent = { name: 'Answers', theme_of_ours: { colour: 'teal' } };
  const { status, body } = await call('PATCH', `${base}/content`, sent);
  expect(status).toBe(200);
  expect(body).toMatchObject({ ...sent, locale: 'en', updated_at: (START_MS + 7_000) / 1000 });
  for (const path of [base, `${base}/content`, `${base}/locales/en/content`]) {
    expect((await call('GET', path)).body).toEqual(body);
  }
  expect((await call('GET', `${base}/locales/de/content`)).body).toEqual(german);
});

test('with a locale that one is changed, and the default one stays as it was', async () => {
  const { call, base } = await start();
  const english = (await call('GET', base)).body;
  const { status, body } = await call('PATCH', `${base}/locales/de/content`, { name: 'Antworten' });
  expect(status).toBe(200);
  expect(body).toMatchObject({ name: 'Antworten', locale: 'de', default_locale: 'en' });
  expect((await call('GET', `${base}/locales/de/content`)).body).toEqual(body);
  expect((await call('GET', base)).body).toEqual(english);
});

test('an article is created in the default locale, and read back as it was sent', async () => {
  const { company, call, base } = await start();
  const author_id = at(company.teammates, 1).id;
  const sent = {
    subject: 'Größen',
    content: '<p>S–XL</p>',
    status: 'published',
    author_id,
    keywords: ['fit'],
  };
  const { status, body } = await call<Article>('POST', `${base}/articles`, sent);
  expect(status).toBe(201);
  expect(body).toMatchObject({ ...sent, locale: 'en', locales: ['en'], created_at: START_MS / 1000 });
  expect(base).toContain(body.knowledge_base_id);
  for (const url of [body._links.self, body._links.content, `/knowledge_base_articles/${body.id}/content`]) {
    expect((await call('GET', url)).body).toEqual(body);
  }
  const { _results } = (await call<{ _results: Article[] }>('GET', `${base}/articles`)).body;
  expect(_results.map(({ subject }) => subject)).toEqual([
    'Getting started',
    'Returns and refunds',
    'Größen',
  ]);
});

test('an article may be created in another locale, and be translated into the default one later', async () => {
  const { call, base } = await start();
  const { status, body } = await call<Article>('POST', `${base}/locales/de/articles`, { subject: 'Versand' });
  expect(status).toBe(201);
  expect(body).toMatchObject({ subject: 'Versand', locale: 'de', locales: ['de'], status: 'draft' });
  const path = `/knowledge_base_articles/${body.id}`;
  expect((await call('GET', path)).body).toEqual(body);
  expect((await call('GET', `${path}/content`)).status).toBe(404);
  const english = await call('PATCH', `${path}/content`, { subject: 'Shipping' });
  expect(english.body).toMatchObject({ subject: 'Shipping', locale: 'en', locales: ['de', 'en'] });
  expect((await call('GET', path)).body).toEqual(english.body);
  expect((await call('GET', `${path}/locales/de/content`)).body).toMatchObject({ subject: 'Versand' });
});

test('an article’s content is changed in one locale, and stays in the other', async () => {
  const { call, base } = await start();
  const { id } = await firstArticle(call, base);
  const path = `/knowledge_base_articles/${id}`;
  const english = await call('PATCH', `${path}/content`, { content: '<p>New</p>' });
  expect(english.status).toBe(200);
  expect(english.body).toMatchObject({ subject: 'Getting started', content: '<p>New</p>', locale: 'en' });
  const german = await call('PATCH', `${path}/locales/de/content`, { subject: 'Anfangen', status: 'draft' });
  expect(german.body).toMatchObject({ subject: 'Anfangen', status: 'draft', locale: 'de' });
  expect((await call('GET', `${path}/content`)).body).toEqual(english.body);
  expect((await call('GET', `${path}/locales/de/content`)).body).toEqual(german.body);
});

test('a locale that the knowledge base does not have is not found, and neither is what is unknown', async () => {
  const { call, base } = await start();
  const { id } = await firstArticle(call, base);
  const missing: [string, string][] = [
    ['PATCH', `${base}/locales/fr/content`],
    ['GET', `${base}/locales/fr/content`],
    ['POST', `${base}/locales/fr/articles`],
    ['PATCH', `${base}/locales/constructor/content`],
    ['PATCH', `/knowledge_base_articles/${id}/locales/fr/content`],
    ['GET', `/knowledge_base_articles/${id}/locales/fr/content`],
    ['GET', '/knowledge_bases/knb_none'],
    ['PATCH', '/knowledge_bases/knb_none/content'],
    ['POST', '/knowledge_bases/knb_none/articles'],
    ['GET', '/knowledge_bases/knb_none/articles'],
    ['GET', '/knowledge_base_articles/kba_none'],
    ['PATCH', '/knowledge_base_articles/kba_none/content'],
  ];
  for (const [method, path] of missing) {
    const { status, body } = await call(method, path, method === 'GET' ? undefined : {});
    expect([method, path, status]).toEqual([method, path, 404]);
    expect(body).toMatchObject({ _error: { status: 404 } });
  }
  expect((await call('GET', base)).body.locales).toEqual(['en', 'de']);
});

test('what is wrong is refused, and nothing is kept of it', async () => {
  const { call, base } = await start();
  const { id, ...before } = await firstArticle(call, base);
  const statusOf = async (method: string, path: string, body: unknown) =>
    (await call(method, path, body)).status;
  expect(await statusOf('PATCH', `${base}/content`, { name: '' })).toBe(422);
  expect(await statusOf('PATCH', `${base}/content`, ['x'])).toBe(400);
  expect(await statusOf('POST', `${base}/articles`, { subject: 5 })).toBe(422);
  expect(await statusOf('POST', `${base}/articles`, { author_id: 'tea_none' })).toBe(422);
  expect(await statusOf('POST', `${base}/articles`, 'x')).toBe(400);
  expect(await statusOf('PATCH', `/knowledge_base_articles/${id}/content`, { status: 'lost' })).toBe(422);
  const { _results } = (await call<{ _results: Article[] }>('GET', `${base}/articles`)).body;
  expect(_results).toHaveLength(2);
  expect(at(_results, 0)).toEqual({ id, ...before });
});

test('what only the service sets cannot be sent', async () => {
  const { call, base } = await start();
  const sent = { id: 'kba_mine', knowledge_base_id: 'knb_mine', locale: 'fr', locales: [], _links: {} };
  const { body } = await call<Article>('POST', `${base}/articles`, { ...sent, created_at: 1 });
  expect(body).toMatchObject({ locale: 'en', locales: ['en'], created_at: START_MS / 1000 });
  expect(body.id).toMatch(/^kba_(?!mine)/);
  expect(base).toContain(body.knowledge_base_id);
  const before = (await call('GET', base)).body;
  const mine = { id: 'knb_mine', default_locale: 'de', created_at: 1 };
  expect((await call('PATCH', `${base}/content`, mine)).body).toEqual({
    ...before,
    updated_at: START_MS / 1000,
  });
});

/** How many of six requests at one moment are let through. */
async function passed(call: Call, method: string, paths: readonly string[]): Promise<number> {
  let count = 0;
  for (let request = 0; request < 6; request++) {
    const { status, headers } = await call(method, at(paths, request % paths.length), {});
    expect(headers.get('x-service-tier')).toBe('2');
    if (status === 429) expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
    else count += 1;
  }
  return count;
}

test('each route of a knowledge base has a guard of its own, whatever the locale', async () => {
  const { service, call, base } = await start();
  expect(await passed(call, 'PATCH', [`${base}/content`])).toBe(5);
  expect(await passed(call, 'PATCH', [`${base}/locales/de/content`, `${base}/locales/en/content`])).toBe(5);
  expect(await passed(call, 'POST', [`${base}/articles`])).toBe(5);
  expect(await passed(call, 'POST', [`${base}/locales/de/articles`, `${base}/locales/en/articles`])).toBe(5);
  await service.advance(999);
  expect((await call('PATCH', `${base}/content`, {})).status).toBe(429);
  await service.advance(1);
  expect((await call('PATCH', `${base}/content`, {})).status).toBe(200);
});

test('each article has a guard of its own on each route, whatever the locale', async () => {
  const { call, base } = await start();
  const list = await call<{ _results: Article[] }>('GET', `${base}/articles`);
  const [one, two] = list.body._results.map(({ id }) => `/knowledge_base_articles/${id}`);
  expect(await passed(call, 'PATCH', [`${one}/content`])).toBe(5);
  expect(await passed(call, 'PATCH', [`${one}/locales/de/content`, `${one}/locales/en/content`])).toBe(5);
  expect(await passed(call, 'PATCH', [`${two}/content`])).toBe(5);
});

test('reading is not guarded', async () => {
  const { call, base } = await start();
  for (let request = 0; request < 7; request++) {
    const { status, headers } = await call('GET', `${base}/content`);
    expect([status, headers.get('x-service-tier')]).toEqual([200, null]);
  }
});
