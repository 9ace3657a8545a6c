import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS, guardBucket, guardLimit } from '../../src/contract/guards.ts';
import { matchPath } from '../../src/sandbox/http/router.ts';

/** A request to a guarded route, as the specification writes routes, with a path that was filled in. */
interface Sent {
  method: string;
  path: string;
  body?: unknown;
}

function find({ method, path }: Sent) {
  for (const [, contract] of ROUTES) {
    const params = contract.method === method ? matchPath(contract.path, path) : undefined;
    if (params !== undefined) return { contract, params };
  }
  throw new Error(`no route ${method} ${path}`);
}

/** Guard and bucket that a request counts in. */
function bucketOf(sent: Sent): string {
  const { contract, params } = find(sent);
  const { guard, method, path } = contract;
  if (guard === undefined) throw new Error(`${method} ${path} is not guarded`);
  return `${guard.guard} ${guardBucket(guard, `${method} ${path}`, params, sent.body)}`;
}

const to = (...handles: string[]) => ({ to: handles });
const thread = (thread_ref: string) => ({ metadata: { thread_ref } });
const external = (external_conversation_id: string) => ({ metadata: { external_conversation_id } });

/** Rows of the two tables (Limits, "Additional rate guards" and "Per-resource guards"): requests that count together, and one that does not. */
const ROWS: { row: string; guard: string; together: Sent[]; apart: Sent[] }[] = [
  {
    row: 'analytics: global',
    guard: 'analytics',
    together: [
      { method: 'POST', path: '/analytics/reports', body: { a: 1 } },
      { method: 'POST', path: '/analytics/exports', body: { b: 2 } },
    ],
    apart: [],
  },
  {
    row: 'search: global',
    guard: 'search',
    together: [
      { method: 'GET', path: '/conversations/search/one' },
      { method: 'GET', path: '/conversations/search/two' },
    ],
    apart: [],
  },
  {
    row: 'message seen: message',
    guard: 'message-seen',
    together: [
      { method: 'POST', path: '/messages/m1/seen' },
      { method: 'POST', path: '/messages/m1/seen', body: { x: 1 } },
    ],
    apart: [{ method: 'POST', path: '/messages/m2/seen' }],
  },
  {
    row: 'app object links: global',
    guard: 'dynamic-object',
    together: [
      { method: 'POST', path: '/links', body: { name: 'a' } },
      { method: 'POST', path: '/links', body: { name: 'b' } },
    ],
    apart: [],
  },
  {
    row: 'POST /accounts: account_id',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/accounts', body: { account_id: 'a1', name: 'x' } },
      { method: 'POST', path: '/accounts', body: { account_id: 'a1', name: 'y' } },
    ],
    apart: [
      { method: 'POST', path: '/accounts', body: { account_id: 'a2' } },
      { method: 'PATCH', path: '/accounts/a1' },
    ],
  },
  {
    row: 'PATCH /accounts/:account_id: account_id',
    guard: 'resource',
    together: [
      { method: 'PATCH', path: '/accounts/a1', body: { name: 'x' } },
      { method: 'PATCH', path: '/accounts/a1', body: {} },
    ],
    apart: [{ method: 'PATCH', path: '/accounts/a2', body: { name: 'x' } }],
  },
  {
    row: 'POST /applications/:application_uid/events: event type (+ object)',
    guard: 'resource',
    together: [
      {
        method: 'POST',
        path: '/applications/u/events',
        body: { type: 't', object: { type: 'o', id: '1' }, p: 1 },
      },
      {
        method: 'POST',
        path: '/applications/u/events',
        body: { type: 't', object: { type: 'o', id: '1' }, p: 2 },
      },
    ],
    apart: [
      { method: 'POST', path: '/applications/u/events', body: { type: 's', object: { type: 'o', id: '1' } } },
      { method: 'POST', path: '/applications/u/events', body: { type: 't', object: { type: 'o', id: '2' } } },
      { method: 'POST', path: '/applications/u/events', body: { type: 't' } },
      { method: 'POST', path: '/applications/v/events', body: { type: 't', object: { type: 'o', id: '1' } } },
    ],
  },
  {
    row: 'POST /inboxes/:inbox_id/channels: channel type',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/inboxes/i/channels', body: { type: 'custom', name: 'a' } },
      { method: 'POST', path: '/inboxes/i/channels', body: { type: 'custom', name: 'b' } },
    ],
    apart: [
      { method: 'POST', path: '/inboxes/i/channels', body: { type: 'email', name: 'a' } },
      { method: 'POST', path: '/inboxes/j/channels', body: { type: 'custom', name: 'a' } },
    ],
  },
  ...['/content', '/locales/en/content'].map((end) => ({
    row: `PATCH /knowledge_bases/:kb_id${end}: kb_id (per route)`,
    guard: 'resource',
    together: [
      { method: 'PATCH', path: `/knowledge_bases/k1${end}` },
      { method: 'PATCH', path: `/knowledge_bases/k1${end.replace('/en/', '/de/')}` },
    ],
    apart: [
      { method: 'PATCH', path: `/knowledge_bases/k2${end}` },
      {
        method: 'PATCH',
        path: `/knowledge_bases/k1${end === '/content' ? '/locales/en/content' : '/content'}`,
      },
      { method: 'POST', path: '/knowledge_bases/k1/articles' },
    ],
  })),
  ...['/articles', '/locales/en/articles'].map((end) => ({
    row: `POST /knowledge_bases/:kb_id${end}: kb_id (per route)`,
    guard: 'resource',
    together: [
      { method: 'POST', path: `/knowledge_bases/k1${end}` },
      { method: 'POST', path: `/knowledge_bases/k1${end.replace('/en/', '/de/')}` },
    ],
    apart: [
      { method: 'POST', path: `/knowledge_bases/k2${end}` },
      {
        method: 'POST',
        path: `/knowledge_bases/k1${end === '/articles' ? '/locales/en/articles' : '/articles'}`,
      },
      { method: 'PATCH', path: '/knowledge_bases/k1/content' },
    ],
  })),
  ...['/content', '/locales/en/content'].map((end) => ({
    row: `PATCH /knowledge_base_articles/:kba_id${end}: kba_id (per route)`,
    guard: 'resource',
    together: [
      { method: 'PATCH', path: `/knowledge_base_articles/a1${end}` },
      { method: 'PATCH', path: `/knowledge_base_articles/a1${end.replace('/en/', '/de/')}` },
    ],
    apart: [
      { method: 'PATCH', path: `/knowledge_base_articles/a2${end}` },
      {
        method: 'PATCH',
        path: `/knowledge_base_articles/a1${end === '/content' ? '/locales/en/content' : '/content'}`,
      },
    ],
  })),
  {
    row: 'PATCH /teammates/:teammate_id: teammate_id',
    guard: 'resource',
    together: [
      { method: 'PATCH', path: '/teammates/t1', body: { first_name: 'a' } },
      { method: 'PATCH', path: '/teammates/t1', body: {} },
    ],
    apart: [{ method: 'PATCH', path: '/teammates/t2', body: { first_name: 'a' } }],
  },
  {
    row: 'POST /channels/:channel_id/messages: channel_id + recipients',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/channels/c1/messages', body: to('a@x.example', 'b@x.example') },
      { method: 'POST', path: '/channels/c1/messages', body: to('B@x.example', 'a@x.example') },
      { method: 'POST', path: '/channels/c1/messages', body: { ...to('b@x.example'), bcc: ['a@x.example'] } },
    ],
    apart: [
      { method: 'POST', path: '/channels/c1/messages', body: to('a@x.example') },
      { method: 'POST', path: '/channels/c2/messages', body: to('a@x.example', 'b@x.example') },
    ],
  },
  {
    row: 'POST /conversations/:conversation_id/messages: conversation_id',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/conversations/c1/messages', body: to('a@x.example') },
      { method: 'POST', path: '/conversations/c1/messages', body: to('b@x.example') },
    ],
    apart: [
      { method: 'POST', path: '/conversations/c2/messages', body: to('a@x.example') },
      { method: 'PATCH', path: '/conversations/c1' },
      { method: 'POST', path: '/conversations/c1/tags' },
    ],
  },
  {
    row: 'POST /channels/:channel_id/incoming_messages: channel + derived conversation reference',
    guard: 'resource',
    together: [
      {
        method: 'POST',
        path: '/channels/c1/incoming_messages',
        body: { ...thread('r1'), sender: { handle: 'a' } },
      },
      {
        method: 'POST',
        path: '/channels/c1/incoming_messages',
        body: { ...thread('r1'), sender: { handle: 'b' } },
      },
    ],
    apart: [
      { method: 'POST', path: '/channels/c1/incoming_messages', body: thread('r2') },
      { method: 'POST', path: '/channels/c2/incoming_messages', body: thread('r1') },
      { method: 'POST', path: '/channels/c1/incoming_messages', body: { sender: { handle: 'a' } } },
    ],
  },
  ...['inbound_messages', 'outbound_message'].map((route) => ({
    row: `POST /channels/:channel_id/${route}: channel + external conversation reference (per route)`,
    guard: 'resource',
    together: [
      { method: 'POST', path: `/channels/c1/${route}`, body: { ...external('e1'), body: 'a' } },
      { method: 'POST', path: `/channels/c1/${route}`, body: { ...external('e1'), body: 'b' } },
    ],
    apart: [
      { method: 'POST', path: `/channels/c1/${route}`, body: external('e2') },
      { method: 'POST', path: `/channels/c2/${route}`, body: external('e1') },
      {
        method: 'POST',
        path: `/channels/c1/${route === 'inbound_messages' ? 'outbound_message' : 'inbound_messages'}`,
        body: external('e1'),
      },
      { method: 'PUT', path: '/channels/c1/conversations/e1/messages/m1' },
    ],
  })),
  {
    row: 'PUT /channels/…/messages/:message_ext_id: channel + external conversation reference (per route)',
    guard: 'resource',
    together: [
      { method: 'PUT', path: '/channels/c1/conversations/e1/messages/m1' },
      { method: 'PUT', path: '/channels/c1/conversations/e1/messages/m2' },
    ],
    apart: [
      { method: 'PUT', path: '/channels/c1/conversations/e2/messages/m1' },
      { method: 'PUT', path: '/channels/c2/conversations/e1/messages/m1' },
    ],
  },
  {
    row: 'POST /inboxes/:inbox_id/imported_messages: inbox_id + recipients',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/inboxes/i1/imported_messages', body: to('a', 'b') },
      { method: 'POST', path: '/inboxes/i1/imported_messages', body: to('b', 'a') },
    ],
    apart: [
      { method: 'POST', path: '/inboxes/i1/imported_messages', body: to('c') },
      { method: 'POST', path: '/inboxes/i2/imported_messages', body: to('a', 'b') },
    ],
  },
  {
    row: 'changes of a conversation: conversation_id, shared across the routes',
    guard: 'resource',
    together: [
      { method: 'PATCH', path: '/conversations/c1', body: { status: 'archived' } },
      { method: 'PUT', path: '/conversations/c1/assignee', body: { assignee_id: null } },
      { method: 'PATCH', path: '/conversations/c1/reminders' },
    ],
    apart: [
      { method: 'PATCH', path: '/conversations/c2' },
      { method: 'POST', path: '/conversations/c1/tags' },
    ],
  },
  {
    row: 'tags and links of a conversation: conversation_id, shared across the requests',
    guard: 'resource',
    together: [
      { method: 'POST', path: '/conversations/c1/tags' },
      { method: 'DELETE', path: '/conversations/c1/tags' },
      { method: 'POST', path: '/conversations/c1/links' },
      { method: 'DELETE', path: '/conversations/c1/links' },
    ],
    apart: [{ method: 'POST', path: '/conversations/c2/tags' }],
  },
];

describe('buckets', () => {
  test.each(ROWS)('$row', ({ guard, together, apart }) => {
    const buckets = new Set(together.map(bucketOf));
    expect(buckets.size).toBe(1);
    expect([...buckets][0]?.split(' ', 1)).toEqual([guard]);
    for (const other of apart) expect(buckets, JSON.stringify(other)).not.toContain(bucketOf(other));
  });

  test('no other route is guarded', () => {
    const inTables = new Set(ROWS.flatMap(({ together }) => together.map((sent) => find(sent).contract)));
    const others = ROUTES.filter(([, contract]) => contract.guard !== undefined && !inTables.has(contract));
    expect(others.map(([operation]) => operation)).toEqual([]);
    expect(inTables.size).toBe(30);
  });

  test('a value cannot pass for two: what stands apart in a key is kept apart', () => {
    const use = { guard: 'resource', by: [':a', ':b'] } as const;
    const one = guardBucket(use, 'GET /x', { a: 'p","q', b: '' }, {});
    const two = guardBucket(use, 'GET /x', { a: 'p', b: 'q' }, {});
    expect(one).not.toBe(two);
  });

  test('a body that is none, or holds nonsense, has a bucket, too', () => {
    const use = { guard: 'resource', by: ['recipients', 'event', 'conversation reference'] } as const;
    for (const body of [undefined, null, 'text', 7, [], { to: { a: 1 }, metadata: 3, object: null }]) {
      expect(guardBucket(use, 'POST /x', {}, body)).toBe(guardBucket(use, 'POST /x', {}, {}));
    }
  });
});

describe('limits', () => {
  test('are those of the table, in requests and milliseconds', () => {
    expect(GUARDS).toEqual({
      analytics: { tier: '1', limit: 1, windowMs: 3_000 },
      resource: { tier: '2', limit: 5, windowMs: 1_000 },
      search: { tier: 'search', limit: 0.4, share: true, windowMs: 60_000 },
      'message-seen': { tier: 'message-seen', limit: 10, windowMs: 3_600_000 },
      'dynamic-object': { tier: 'dynamic-object', limit: 60, windowMs: 60_000 },
    });
  });

  test('of search are 40% of the caller’s rate limit, rounded down', () => {
    expect([50, 100, 200, 120, 126].map((rateLimit) => guardLimit(GUARDS.search, rateLimit))).toEqual([
      20, 40, 80, 48, 50,
    ]);
    expect(guardLimit(GUARDS.resource, 200)).toBe(5);
  });
});
