import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { API, type BodyOf, type Operation, ROUTES } from '../../src/contract/api/api.ts';
import { type Document, filled, idsOf, type List, routeAt, startOpen } from './support/routes.ts';
import { at, START_MS } from './support/test-sandbox.ts';

/** The routes of the specification's tables (Endpoints), by method. */
const SPECIFIED = {
  GET: `/contacts /conversations /conversations/search/:query /responses /responses/:response_id
    /tags/:tag_id/children /teammates/:teammate_id/inboxes`,
  POST: `/accounts /analytics/exports /analytics/reports /applications/:application_uid/events
    /channels/:channel_id/inbound_messages /channels/:channel_id/incoming_messages
    /channels/:channel_id/messages /channels/:channel_id/outbound_message
    /conversations/:conversation_id/links /conversations/:conversation_id/messages
    /conversations/:conversation_id/tags /inboxes/:inbox_id/channels /inboxes/:inbox_id/imported_messages
    /knowledge_bases/:kb_id/articles /knowledge_bases/:kb_id/locales/:locale/articles
    /links /messages/:message_id/seen /tags/:tag_id/children`,
  PUT: `/channels/:channel_id/conversations/:conv_ext_id/messages/:message_ext_id
    /conversations/:conversation_id/assignee`,
  PATCH: `/accounts/:account_id /conversations/:conversation_id /conversations/:conversation_id/reminders
    /knowledge_bases/:kb_id/content /knowledge_bases/:kb_id/locales/:locale/content
    /knowledge_base_articles/:kba_id/content /knowledge_base_articles/:kba_id/locales/:locale/content
    /tags/:tag_id /teammates/:teammate_id`,
  DELETE: '/conversations/:conversation_id/links /conversations/:conversation_id/tags',
};

type WithBody = { [Op in Operation]: BodyOf<Op> extends undefined ? never : Op }[Operation];

/** A body that each route takes. */
function goodBodies({ tag_id = '', link_id = '', teammate_id = '' }: Record<string, string>) {
  const message = { body: 'Hello', sender: { handle: 'a@b.example' }, to: ['c@d.example'] };
  const asked = { start: 1, end: 2, timezone: 'Europe/Berlin', filters: { of_ours: 'x' } };
  const article = { subject: 'Größen', content: '<p>S–XL</p>', status: 'published' } as const;
  const custom = { custom_fields: { tier: 'gold', notes: [null, { deep: true }] } };
  const good: { [Op in WithBody]: BodyOf<Op> } = {
    updateConversation: custom,
    assignConversation: { assignee_id: teammate_id },
    remindOfConversation: { teammate_id, scheduled_at: null },
    addConversationTags: { tag_ids: [tag_id] },
    removeConversationTags: { tag_ids: [tag_id] },
    addConversationLinks: { link_ids: [link_id] },
    removeConversationLinks: { link_ids: [link_id] },
    createMessage: message,
    replyToConversation: message,
    receiveIncomingMessage: message,
    receiveInboundMessage: message,
    recordOutboundMessage: message,
    putExternalMessage: message,
    importMessage: message,
    createChildTag: { name: 'Überfällig', description: 'since Monday' },
    updateTag: { highlight: 'red' },
    createAccount: { name: 'Ørsted & Søn', domains: ['son.example'], is_blocked: true, ...custom },
    updateAccount: { external_id: 'erp/17' },
    createLink: { name: 'Order 77 💛', external_url: 'https://shop.example/77?tab=items#top', ...custom },
    createChannel: { type: 'custom', name: 'Ladengespräch 💬', settings: { nested: { deep: [1] } } },
    updateTeammate: { username: 'élo.dc', is_available: false, ...custom },
    updateKnowledgeBaseContent: { name: 'Answers' },
    updateKnowledgeBaseLocaleContent: { name: 'Antworten' },
    createArticle: article,
    createLocaleArticle: article,
    updateArticleContent: article,
    updateArticleLocaleContent: article,
    createReport: asked,
    createExport: { ...asked, type: 'messages' },
    createApplicationEvent: { type: 'order' },
  };
  return good as Partial<Record<Operation, object>>;
}

/** Bodies that are wrong though each of their members might be right. */
const WRONG: Partial<Record<Operation, readonly object[]>> = {
  updateTag: [{ parent_tag_id: 'tag_none' }],
  updateTeammate: [{ first_name: '', last_name: ' ' }],
  createArticle: [{ author_id: 'tea_none' }],
  updateArticleContent: [{ author_id: 'tea_none' }],
  createReport: [{ start: 2, end: 2 }, { start: START_MS / 1000 + 60 }],
  createExport: [{ start: 2, end: 2 }, { start: START_MS / 1000 + 60 }],
};

const ODD = [-1, ' ', 'no such', null, [7], {}];

/** Bodies with one member that the contract does not allow, and without any if one is needed. */
function wrongBodies(operation: Operation, schema: z.ZodType | undefined, good: object | undefined) {
  if (!(schema instanceof z.ZodObject)) return [];
  const odd = Object.keys(schema.shape).flatMap((member) =>
    ODD.map((value) => ({ ...good, [member]: value })),
  );
  return [...[{}, ...odd].filter((body) => !schema.safeParse(body).success), ...(WRONG[operation] ?? [])];
}

/** A company, an id for each placeholder, and bodies for each route that takes one. */
async function start() {
  const parts = await startOpen({ contacts: 60, conversations: 20 });
  const ids = await idsOf(parts.service, parts.company);
  return { ...parts, ids, good: goodBodies(ids) };
}

describe('What the service does', () => {
  test('It is an HTTP API whose answers are JSON, errors included', async () => {
    const { token, send } = await start();
    const statuses = new Set<number>();
    for (const [operation, { method, path }] of ROUTES) {
      for (const by of [token, 'nobody']) {
        const { status, headers, body } = await send(method, filled(path, {}), undefined, by);
        expect(headers.get('content-type'), operation).toBe('application/json; charset=utf-8');
        if (status >= 400) expect(body).toMatchObject({ _error: { status } });
        statuses.add(status);
      }
    }
    expect(statuses).toEqual(new Set([200, 201, 401, 404, 422]));
  });
});

describe('Endpoints: routes', () => {
  test('The routes of the tables are served, and no other is taken for specified', () => {
    const specified = ROUTES.filter(([, { source }]) => source === 'specified');
    const rows = Object.entries(SPECIFIED).flatMap(([method, paths]) =>
      paths.split(/\s+/).map((path) => `${method} ${path}`),
    );
    expect(specified.map(([, { method, path }]) => `${method} ${path}`).toSorted()).toEqual(rows.toSorted());
  });

  test('Every route answers as it is described, with a status of its own', async () => {
    const { service, token, ids, good } = await start();
    for (const [operation, { method, path, status = 200, mediaType = 'application/json' }] of ROUTES) {
      const body = JSON.stringify(good[operation]) ?? null;
      const response = await service.api(filled(path, ids), token, { method, body });
      expect([operation, response.status]).toEqual([operation, status]);
      expect(response.headers.get('content-type')).toBe(`${mediaType}; charset=utf-8`);
    }
  });
});

describe('Endpoints: pagination', () => {
  test('Every list comes in pages of the limit; _links.self is the URL of the page', async () => {
    const { service, list, read, ids } = await start();
    for (const [operation, { path }] of ROUTES.filter(([, route]) => route.list)) {
      const walked: Document[] = [];
      const first = `${service.sandbox.apiUrl}${filled(path, ids)}?limit=1`;
      for (let url: string | null = first; url !== null; ) {
        const page: List = await read<List>(url);
        expect(page._results.length).toBeLessThanOrEqual(1);
        expect(page._links.self).toBe(url);
        walked.push(...page._results);
        url = page._pagination.next;
      }
      expect(walked, operation).not.toEqual([]);
      expect(walked).toEqual(await list(`${filled(path, ids)}?limit=100`));
    }
  });
});

/** What the service sets itself. */
const FORGED: Record<string, unknown> = {
  ...{ id: 'mine', _links: { self: 'http://mine.example/' }, created_at: 1, updated_at: 1, is_private: true },
  ...{ locale: 'fr', default_locale: 'fr', locales: ['fr'], knowledge_base_id: 'mine', inbox_id: 'mine' },
  ...{ is_admin: true, is_blocked: true, email: 'mine@x.example', teammate_id: 'mine' },
  ...{ application_uid: 'mine', status: 'done', progress: 100, url: 'http://mine.example/', size: 1 },
};

describe('Resources (our choice)', () => {
  const records = ROUTES.filter(([name]) => /^(create|update)(?!Message|Conversation)/.test(name));

  test('A record keeps what is sent, own members too, but for what the service sets', async () => {
    const { service, send, read, list, ids, good } = await start();
    const now = START_MS / 1000 + 12;
    await service.advance(7_000);
    for (const [operation, { method, path, body: schema, answer }] of records) {
      const has = (shape: unknown, member: string) => shape instanceof z.ZodObject && member in shape.shape;
      const forged = Object.entries(FORGED).filter(([member]) => has(answer, member) && !has(schema, member));
      const sent = { ...good[operation], of_ours: { deep: [1, null] } };
      const url = filled(path, ids);
      const before = method === 'PATCH' ? await read(url) : {};
      const { body } = await send(method, url, { ...sent, ...Object.fromEntries(forged) });
      const times = method === 'PATCH' ? { updated_at: now } : { created_at: now };
      expect(body, operation).toMatchObject({ ...before, ...sent, ...times });
      for (const [member, value] of forged) expect([member, body[member]]).not.toEqual([member, value]);
      expect(await read(body._links.content ?? body._links.self)).toEqual(body);
      if (method === 'POST' && routeAt('GET', path)) expect(await list(url)).toContainEqual(body);
    }
  });
});

const isWriting = ([, { method }]: (typeof ROUTES)[number]) => method !== 'GET';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

describe('Errors (our choice)', () => {
  test('An id that is unknown, or another company’s, is 404', async () => {
    const { service, send, ids, good } = await start();
    const other = await service.company({ plan: 'enterprise' });
    const ofOther = await idsOf(service, other);
    const foreign: Record<string, string> = { ...ofOther, locale: 'fr', application_uid: 'constructor' };
    for (const [operation, { method, path }] of ROUTES) {
      const named = path.match(/(?<=:)(?!query|\w+_ext_id)\w+/g) ?? [];
      for (const values of named.flatMap((name) => [{ [name]: 'none' }, { [name]: foreign[name] ?? '' }])) {
        const { status } = await send(method, filled(path, { ...ids, ...values }), good[operation]);
        expect([operation, values, status]).toEqual([operation, values, 404]);
      }
    }
    expect((await send('GET', '/nothing')).status).toBe(404);
  });

  test('A method that a path does not have is 405, and allow lists those that it has', async () => {
    const { send, ids } = await start();
    for (const path of new Set(ROUTES.map(([, route]) => route.path))) {
      const methods = METHODS.filter((method) => routeAt(method, path));
      for (const method of METHODS.filter((one) => !methods.includes(one))) {
        const { status, headers } = await send(method, filled(path, ids));
        expect([method, path, status]).toEqual([method, path, 405]);
        expect(headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(methods));
      }
    }
  });

  test('A body that is no JSON object is 400, a wrong one 422, and nothing changes', async () => {
    const { service, company, token, send, read, ids, good } = await start();
    const counts = async () => (await service.state()).companies.find(({ id }) => id === company.id)?.counts;
    const before = await counts();
    for (const [operation, { method, path, body: schema }] of ROUTES.filter(isWriting)) {
      const url = filled(path, ids);
      const shown = routeAt('GET', path) && (await read(url));
      for (const body of ['{', '[]', 'null', '"x"']) {
        const { status } = await service.api(url, token, { method, body });
        expect([operation, body, status]).toEqual([operation, body, 400]);
      }
      for (const body of wrongBodies(operation, schema, good[operation])) {
        const { status } = await send(method, url, body);
        expect([operation, body, status]).toEqual([operation, body, 422]);
      }
      if (shown) expect(await read(url)).toEqual(shown);
    }
    expect(await counts()).toEqual(before);
    const seen = filled('/messages/:message_id/seen', ids);
    expect((await service.api(seen, token, { method: 'POST' })).status).toBe(200);
  });

  test('A body of more than 500 levels is 400; less breaks no list or snapshot', async () => {
    const { service, company, token, list } = await startOpen();
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const path = `/accounts/${at(company.accounts, 0)}`;
    const statusOf = async (levels: number) =>
      (await service.api(path, token, { method: 'PATCH', body: `{"deep":${nested(levels)}}` })).status;
    for (const levels of [500, 100_000]) expect([levels, await statusOf(levels)]).toEqual([levels, 400]);
    expect(await statusOf(499)).toBe(200);
    expect((await list('/accounts')).map(({ deep }) => deep)).toContainEqual(JSON.parse(nested(499)));
    expect((await service.control('snapshot', {})).status).toBe(201);
  });
});

describe('Versioning', () => {
  test('The contract has the fields that are listed as added, where they belong', () => {
    const fieldsOf = ({ answer }: { answer: z.ZodObject }) => Object.keys(answer.shape);
    expect(fieldsOf(API.getTag)).toEqual(expect.arrayContaining(['created_at', 'updated_at']));
    expect(fieldsOf(API.getAccount)).toContain('is_blocked');
    expect(fieldsOf(API.getMessage)).toEqual(expect.arrayContaining(['is_draft', 'error_type']));
    expect(fieldsOf(API.receiveInboundMessage)).toEqual(['status', 'message_uid']);
  });
});
