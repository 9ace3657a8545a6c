import { describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS, guardBucket, guardLimit } from '../../src/contract/guards.ts';
import { matchPath } from '../../src/sandbox/http/router.ts';

/** A request as method, path and, in JSON, a body. */
type Sent = string;

function find(sent: Sent) {
  const [method, path = '', ...body] = sent.split(' ');
  for (const [, contract] of ROUTES) {
    const params = contract.method === method ? matchPath(contract.path, path) : undefined;
    if (params === undefined) continue;
    return { contract, params, body: body.length > 0 ? JSON.parse(body.join(' ')) : undefined };
  }
  throw new Error(`no route ${sent}`);
}

/** Guard and bucket that a request counts in. */
function bucketOf(sent: Sent): string {
  const { contract, params, body } = find(sent);
  const { guard, method, path } = contract;
  if (guard === undefined) throw new Error(`${method} ${path} is not guarded`);
  return `${guard.guard} ${guardBucket(guard, `${method} ${path}`, params, body)}`;
}

const EVENT = 'POST /applications/u/events {"type":"t","object":{"type":"o","id":"1"}';
const KB = ['PATCH /knowledge_bases/k1', 'POST /knowledge_bases/k1', 'PATCH /knowledge_base_articles/k1'];
const LOCALE = ['/locales/en/content', '/locales/en/articles', '/locales/en/content'] as const;
const external = (id: string) => `{"metadata":{"external_conversation_id":"${id}"}}`;
const thread = (id: string) => `{"metadata":{"thread_ref":"${id}"},"sender":{"handle":"a"}}`;

/** Rows of the tables (Limits, "Additional rate guards"): requests that count together, and others that do not. */
const ROWS: [row: string, together: Sent[], apart?: Sent[]][] = [
  ['analytics: global', ['POST /analytics/reports {"a":1}', 'POST /analytics/exports {"b":2}']],
  ['search: global', ['GET /conversations/search/one', 'GET /conversations/search/two']],
  [
    'message-seen: message',
    ['POST /messages/m1/seen', 'POST /messages/m1/seen {"x":1}'],
    ['POST /messages/m2/seen'],
  ],
  ['dynamic-object: global', ['POST /links {"name":"a"}', 'POST /links {"name":"b"}']],
  [
    'resource: account_id of a new account',
    ['POST /accounts {"account_id":"a1","name":"x"}', 'POST /accounts {"account_id":"a1","name":"y"}'],
    ['POST /accounts {"account_id":"a2"}', 'PATCH /accounts/a1'],
  ],
  [
    'resource: account_id',
    ['PATCH /accounts/a1 {"name":"x"}', 'PATCH /accounts/a1 {}'],
    ['PATCH /accounts/a2'],
  ],
  [
    'resource: event type (+ object)',
    [`${EVENT},"p":1}`, `${EVENT},"p":2}`],
    [
      `${EVENT.replace('"t"', '"s"')}}`,
      `${EVENT.replace('"1"', '"2"')}}`,
      `${EVENT.replace('/u/', '/v/')}}`,
      'POST /applications/u/events {"type":"t"}',
    ],
  ],
  [
    'resource: channel type',
    ['POST /inboxes/i/channels {"type":"custom","name":"a"}', 'POST /inboxes/i/channels {"type":"custom"}'],
    ['POST /inboxes/i/channels {"type":"email"}', 'POST /inboxes/j/channels {"type":"custom"}'],
  ],
  ...KB.flatMap((base, at): [string, Sent[], Sent[]][] => {
    const [local = '', plain = ''] = [LOCALE[at], LOCALE[at]?.replace('/locales/en', '')];
    const other = base.replace('k1', 'k2');
    return [
      [`resource: ${base}${plain} (per route)`, [base + plain, base + plain], [other + plain, base + local]],
      [
        `resource: ${base}${local} (per route)`,
        [base + local, base + local.replace('en', 'de')],
        [other + local, base + plain],
      ],
    ];
  }),
  [
    'resource: teammate_id',
    ['PATCH /teammates/t1 {"first_name":"a"}', 'PATCH /teammates/t1'],
    ['PATCH /teammates/t2'],
  ],
  [
    'resource: channel_id + recipients',
    [
      'POST /channels/c1/messages {"to":["a","b"]}',
      'POST /channels/c1/messages {"to":["B","a"]}',
      'POST /channels/c1/messages {"to":["b"],"bcc":["a"]}',
    ],
    ['POST /channels/c1/messages {"to":["a"]}', 'POST /channels/c2/messages {"to":["a","b"]}'],
  ],
  [
    'resource: conversation_id of a reply',
    ['POST /conversations/c1/messages {"to":["a"]}', 'POST /conversations/c1/messages {"to":["b"]}'],
    ['POST /conversations/c2/messages', 'PATCH /conversations/c1', 'POST /conversations/c1/tags'],
  ],
  [
    'resource: channel + derived conversation reference',
    [
      `POST /channels/c1/incoming_messages ${thread('r')}`,
      `POST /channels/c1/incoming_messages ${thread('r')}`,
    ],
    [
      `POST /channels/c1/incoming_messages ${thread('s')}`,
      `POST /channels/c2/incoming_messages ${thread('r')}`,
      'POST /channels/c1/incoming_messages {"sender":{"handle":"a"}}',
    ],
  ],
  ...[
    ['inbound_messages', 'outbound_message'],
    ['outbound_message', 'inbound_messages'],
  ].map(([route, other]): [string, Sent[], Sent[]] => [
    `resource: channel + external conversation, ${route} (per route)`,
    [`POST /channels/c1/${route} ${external('e')}`, `POST /channels/c1/${route} ${external('e')}`],
    [
      `POST /channels/c1/${route} ${external('f')}`,
      `POST /channels/c2/${route} ${external('e')}`,
      `POST /channels/c1/${other} ${external('e')}`,
      'PUT /channels/c1/conversations/e/messages/m1',
    ],
  ]),
  [
    'resource: channel + external conversation, PUT (per route)',
    ['PUT /channels/c1/conversations/e1/messages/m1', 'PUT /channels/c1/conversations/e1/messages/m2'],
    ['PUT /channels/c1/conversations/e2/messages/m1', 'PUT /channels/c2/conversations/e1/messages/m1'],
  ],
  [
    'resource: inbox_id + recipients',
    [
      'POST /inboxes/i1/imported_messages {"to":["a","b"]}',
      'POST /inboxes/i1/imported_messages {"to":["b","a"]}',
    ],
    [
      'POST /inboxes/i1/imported_messages {"to":["c"]}',
      'POST /inboxes/i2/imported_messages {"to":["a","b"]}',
    ],
  ],
  [
    'resource: conversation_id, shared across the changes of a conversation',
    ['PATCH /conversations/c1', 'PUT /conversations/c1/assignee', 'PATCH /conversations/c1/reminders'],
    ['PATCH /conversations/c2', 'POST /conversations/c1/tags'],
  ],
  [
    'resource: conversation_id, shared across its tags and links',
    ['POST', 'DELETE'].flatMap((method) =>
      ['tags', 'links'].map((kind) => `${method} /conversations/c1/${kind}`),
    ),
    ['POST /conversations/c2/tags'],
  ],
];

describe('buckets', () => {
  test.each(ROWS)('%s', (row, together, apart = []) => {
    const buckets = new Set(together.map(bucketOf));
    expect([...buckets].map((bucket) => bucket.split(' ', 1))).toEqual([row.split(':', 1)]);
    for (const other of apart) expect(buckets, JSON.stringify(other)).not.toContain(bucketOf(other));
  });

  test('no other route is guarded', () => {
    const inTables = new Set(ROWS.flatMap(([, together]) => together.map((sent) => find(sent).contract)));
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
