import { expect, test } from 'vitest';
import { expectGuarded, type Send } from '../sandbox/support/guarded.ts';
import { startMessaging } from '../sandbox/support/messaging.ts';
import { at } from '../sandbox/support/test-sandbox.ts';

/** Our reading of "25 req / 1s": tier 2, five requests in a second. */
const RESOURCE = { tier: '2', limit: 5, windowMs: 1_000 };

async function start() {
  const parts = await startMessaging({});
  const request =
    (method: string, path: string, body?: unknown): Send =>
    () =>
      parts.service.call(method, path, parts.token, body);
  return {
    ...parts,
    request,
    get: (path: string) => request('GET', path),
    post: (path: string, body?: unknown) => request('POST', path, body),
    path: `/conversations/${parts.conversation.id}`,
    otherPath: `/conversations/${at(parts.conversations, 1).id}`,
    ann: { sender: { handle: 'ann' }, body: 'x' },
    bob: { sender: { handle: 'bob' }, body: 'x' },
  };
}

test('changes, assignee and reminders of a conversation share its bucket; others have their own', async () => {
  const { service, request, get, post, path, otherPath, teammate, tag } = await start();
  await expectGuarded(service, {
    ...RESOURCE,
    send: [
      request('PATCH', path, { subject: 'a' }),
      request('PUT', `${path}/assignee`, { assignee_id: teammate.id }),
      request('PATCH', `${path}/reminders`, { teammate_id: teammate.id, scheduled_at: null }),
    ],
    apart: [
      request('PATCH', otherPath, { subject: 'a' }),
      post(`${path}/tags`, { tag_ids: [tag] }),
      post(`${path}/messages`, { text: 'x' }),
      get(path),
    ],
  });
});

test('tags and links of a conversation share its bucket, put on or taken off; others have their own', async () => {
  const { service, request, post, path, otherPath, tag, read } = await start();
  const link_ids = (await read<{ _results: { id: string }[] }>('/links'))._results.map(({ id }) => id);
  await expectGuarded(service, {
    ...RESOURCE,
    send: [
      post(`${path}/tags`, { tag_ids: [tag] }),
      request('DELETE', `${path}/tags`, { tag_ids: [tag] }),
      post(`${path}/links`, { link_ids }),
      request('DELETE', `${path}/links`, { link_ids }),
    ],
    apart: [post(`${otherPath}/tags`, { tag_ids: [tag] }), request('PATCH', path, { subject: 'a' })],
  });
});

test('messages in a conversation count by conversation, whoever they go to', async () => {
  const { service, get, post, path, otherPath } = await start();
  const text = 'x';
  await expectGuarded(service, {
    ...RESOURCE,
    send: [post(`${path}/messages`, { text }), post(`${path}/messages`, { text, to: ['ann'] })],
    apart: [post(`${otherPath}/messages`, { text }), get(`${path}/messages`)],
  });
});

test('messages in a channel count by channel and recipients, in any order and case', async () => {
  const { service, post, channel, otherChannel, path } = await start();
  const to = ['ann@example.com', 'bob@example.com'];
  const text = 'x';
  const messages = `/channels/${channel}/messages`;
  await expectGuarded(service, {
    ...RESOURCE,
    send: [
      post(messages, { to, text }),
      post(messages, { to: to.toReversed(), text: 'y' }),
      post(messages, { to: ['ANN@example.com'], cc: ['bob@example.com'], text }),
      post(messages, { to: ['bob@example.com'], bcc: ['ann@example.com', 'bob@example.com'], text }),
    ],
    apart: [
      post(messages, { to: ['ann@example.com'], text }),
      post(messages, { to: [...to, 'eve@example.com'], text }),
      post(`/channels/${otherChannel}/messages`, { to, text }),
      post(`${path}/messages`, { to, text }),
    ],
  });
});

test('incoming messages count by channel and the reference of their conversation, or else their sender', async () => {
  const { service, post, channel, otherChannel, ann, bob } = await start();
  const incoming = `/channels/${channel}/incoming_messages`;
  const metadata = { thread_ref: 't' };
  await expectGuarded(service, {
    ...RESOURCE,
    send: [post(incoming, { ...ann, metadata }), post(incoming, { ...bob, metadata })],
    apart: [
      post(incoming, { ...ann, metadata: { thread_ref: 'u' } }),
      post(incoming, ann),
      post(`/channels/${otherChannel}/incoming_messages`, { ...ann, metadata }),
      post(`/channels/${channel}/inbound_messages`, { ...ann, metadata }),
    ],
  });
  await service.advance(1_000);
  await expectGuarded(service, {
    ...RESOURCE,
    send: [post(incoming, ann), post(incoming, { sender: { handle: 'ANN' }, body: 'y' })],
    apart: [post(incoming, bob)],
  });
});

test('inbound, outbound and external messages count by channel and external conversation, each route apart', async () => {
  const { service, request, post, channel, otherChannel, ann } = await start();
  const metadata = (external_conversation_id: string) => ({ metadata: { external_conversation_id } });
  const put = (path: string) => request('PUT', path, ann);
  const routes = (of: string, conversation: string): Send[] => [
    post(`/channels/${of}/inbound_messages`, { ...ann, ...metadata(conversation) }),
    post(`/channels/${of}/outbound_message`, { to: ['ann'], body: 'x', ...metadata(conversation) }),
    put(`/channels/${of}/conversations/${conversation}/messages/m1`),
  ];
  const same = [
    post(`/channels/${channel}/inbound_messages`, {
      sender: { handle: 'bob' },
      text: 'y',
      metadata: { external_conversation_id: 'c', external_id: 'other' },
    }),
    post(`/channels/${channel}/outbound_message`, { to: ['bob'], text: 'y', ...metadata('c') }),
    put(`/channels/${channel}/conversations/c/messages/m2`),
  ];
  for (const route of [0, 1, 2]) {
    const all = routes(channel, 'c');
    await expectGuarded(service, {
      ...RESOURCE,
      send: [at(all, route), at(same, route)],
      apart: [
        ...all.filter((_, index) => index !== route),
        at(routes(channel, 'd'), route),
        at(routes(otherChannel, 'c'), route),
      ],
    });
    await service.advance(1_000);
  }
});

test('imported messages count by inbox and recipients', async () => {
  const { service, post, inbox, otherInbox, ann, bob } = await start();
  const imported = `/inboxes/${inbox}/imported_messages`;
  const to = ['shop@example.com', 'two@example.com'];
  await expectGuarded(service, {
    ...RESOURCE,
    send: [post(imported, { ...ann, to }), post(imported, { ...bob, to: to.toReversed() })],
    apart: [
      post(imported, { ...ann, to: ['shop@example.com'] }),
      post(`/inboxes/${otherInbox}/imported_messages`, { ...ann, to }),
    ],
  });
});

test('new channels count by inbox and type', async () => {
  const { service, get, post, inbox, otherInbox } = await start();
  const path = `/inboxes/${inbox}/channels`;
  await expectGuarded(service, {
    ...RESOURCE,
    send: [post(path, { type: 'custom' }), post(path, { type: 'custom', name: 'other' })],
    apart: [
      post(path, { type: 'email' }),
      post(`/inboxes/${otherInbox}/channels`, { type: 'custom' }),
      get(path),
    ],
  });
});

test('a message is said to be seen ten times an hour; others have their own bucket', async () => {
  const { service, get, post, messagesOf, conversation } = await start();
  const [one, other] = await messagesOf(conversation.id);
  const [plain, withBody] = [
    post(`/messages/${one?.id}/seen`),
    post(`/messages/${one?.id}/seen`, { by: 'ann' }),
  ];
  for (let request = 0; request < 10; request++) {
    const { status, headers } = await (request % 2 === 0 ? plain : withBody)();
    expect([status, headers.get('x-service-tier')]).toEqual([200, 'message-seen']);
  }
  const refused = async (wait: number) => {
    const { status, headers, body } = await plain();
    expect([status, headers.get('x-service-tier')]).toEqual([429, 'message-seen']);
    expect(headers.get('retry-after')).toBe(String(Math.ceil(wait / 1000)));
    expect(Number(headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
    expect(body).toMatchObject({ _error: { message: expect.stringContaining(`${wait} milliseconds`) } });
  };
  await refused(3_600_000);
  expect((await post(`/messages/${other?.id}/seen`)()).status).toBe(200);
  expect((await get(`/messages/${one?.id}`)()).status).toBe(200);
  await service.advance(3_599_999);
  await refused(1);
  await service.advance(1);
  for (let request = 0; request < 10; request++) expect((await plain()).status).toBe(200);
  await refused(3_600_000);
});

test('a request that is refused for its body or its conversation counts for the guard too', async () => {
  const { post, path } = await start();
  for (const body of [{}, { text: '' }, { text: 'x', author_id: 'tea_none' }, ['x'], { text: 'x' }]) {
    const answer = await post(`${path}/messages`, body)();
    expect(answer.headers.get('x-service-tier')).toBe('2');
    expect(answer.status).not.toBe(429);
  }
  expect((await post(`${path}/messages`, { text: 'x' })()).status).toBe(429);
  const unknown = post('/conversations/cnv_none/messages', { text: 'x' });
  for (let request = 0; request < 5; request++) expect((await unknown()).status).toBe(404);
  expect((await unknown()).status).toBe(429);
});
