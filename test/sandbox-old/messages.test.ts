import { expect, test } from 'vitest';
import { type Conversation, type List, type Message, startMessaging } from '../sandbox/support/messaging.ts';
import { at, START_MS, startFrozen } from '../sandbox/support/test-sandbox.ts';

const NOW = START_MS / 1000;

test('a generated conversation has a few messages, the same whenever they are read', async () => {
  const { read, messagesOf, conversations, company } = await startMessaging();
  for (const conversation of conversations.slice(0, 5)) {
    const messages = await messagesOf(conversation.id);
    expect(messages.length).toBeGreaterThan(1);
    const first = at(messages, 0);
    expect(first).toMatchObject({
      is_inbound: true,
      is_draft: false,
      error_type: null,
      author: null,
      created_at: conversation.created_at,
      recipients: [{ handle: conversation.recipient.handle, role: 'from' }, { role: 'to' }],
    });
    const last = at(messages, messages.length - 1);
    const { excerpt, is_inbound, created_at } = conversation.last_message;
    expect(last).toMatchObject({ text: excerpt, is_inbound, created_at });
    const outbound = messages.filter((message) => !message.is_inbound);
    const teammates = company.teammates.map(({ id }) => id);
    expect(outbound.every(({ author }) => author !== null && teammates.includes(author.id))).toBe(true);
    const times = messages.map((message) => message.created_at);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    for (const message of messages) {
      expect(message.conversation_id).toBe(conversation.id);
      expect(await read(message._links.self)).toEqual(message);
    }
    expect(await messagesOf(conversation.id)).toEqual(messages);
  }
});

test('messages of a million conversations are there at once', async () => {
  const service = await startFrozen();
  const company = await service.company({ conversations: 1_000_000 });
  const token = at(company.api_tokens, 0).token;
  expect(company.counts).toMatchObject({ messages: 3_000_000 });
  const { body } = await service.call<List<Conversation>>('GET', '/conversations/search/x?limit=1', token);
  const conversation = at(body._results, 0);
  const list = await service.call<List<Message>>('GET', `/conversations/${conversation.id}/messages`, token);
  expect(list.body._results.map((message) => message.conversation_id)).toEqual(
    list.body._results.map(() => conversation.id),
  );
  expect(list.body._results.length).toBeGreaterThan(0);
});

test('a message is found by its message_uid too', async () => {
  const { read, statusOf, messagesOf, conversation, foreign } = await startMessaging();
  const message = at(await messagesOf(conversation.id), 1);
  expect(message.message_uid).not.toBe(message.id);
  expect(await read(`/messages/${message.message_uid}`)).toEqual(message);
  for (const id of ['msg_none', 'mui_none', foreign.message, conversation.id]) {
    expect(await statusOf('GET', `/messages/${id}`)).toBe(404);
    expect(await statusOf('POST', `/messages/${id}/seen`)).toBe(404);
  }
  expect(await statusOf('DELETE', `/messages/${message.id}`)).toBe(405);
  expect(await statusOf('GET', `/messages/${message.id}/seen`)).toBe(405);
});

test('a message in a channel starts a conversation, and is read back as it was sent', async () => {
  const { read, send, messagesOf, channel, inbox, tag, otherTag, teammate } = await startMessaging();
  const sent = {
    to: ['new.person@example.com', 'second@example.com'],
    cc: ['copy@example.com'],
    bcc: ['hidden@example.com'],
    subject: 'Ihr Päckchen 📦',
    body: '<p>It is <b>on its way</b>.</p>',
    text: 'It is on its way.',
    sender_name: 'Larkspur',
    metadata: { order: { id: 7 } },
    of_ours: [1, null],
  };
  const { status, body } = await send<Message>('POST', `/channels/${channel}/messages`, {
    ...sent,
    author_id: teammate.id,
    tag_ids: [tag],
    options: { tag_ids: [otherTag, tag] },
  });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    ...sent,
    type: 'custom',
    is_inbound: false,
    author: { id: teammate.id, name: teammate.name },
    created_at: NOW,
    is_seen: false,
    blurb: 'It is on its way.',
  });
  expect(body.recipients).toEqual([
    { handle: 'Shop chat', role: 'from' },
    { handle: 'new.person@example.com', role: 'to' },
    { handle: 'second@example.com', role: 'to' },
    { handle: 'copy@example.com', role: 'cc' },
    { handle: 'hidden@example.com', role: 'bcc' },
  ]);
  expect(await read(body._links.self)).toEqual(body);
  const conversation = await read<Conversation>(body._links.related.conversation);
  expect(conversation).toMatchObject({
    subject: sent.subject,
    status: 'unassigned',
    inbox: { id: inbox },
    recipient: { handle: 'new.person@example.com', role: 'to' },
    last_message: { excerpt: 'It is on its way.', is_inbound: false, created_at: NOW },
    created_at: NOW,
  });
  expect(conversation.tags.map(({ id }) => id)).toEqual([tag, otherTag]);
  expect(await messagesOf(conversation.id)).toEqual([body]);
  const all = await read<List<Conversation>>('/conversations?limit=100');
  expect(all._results.at(-1)).toEqual(conversation);
});

test('text and body are made of each other, and a conversation can start archived', async () => {
  const { read, send, channel } = await startMessaging();
  const path = `/channels/${channel}/messages`;
  const html = await send<Message>('POST', path, { to: ['a@example.com'], body: '<p>one</p><p>two</p>' });
  expect(html.body.text).toBe('one two');
  const text = await send<Message>('POST', path, {
    to: ['b@example.com'],
    text: '1 < 2 & so\non',
    options: { archive: true },
  });
  expect(text.body.body).toBe('1 &lt; 2 &amp; so<br>on');
  expect(await read(text.body._links.related.conversation)).toMatchObject({ status: 'archived' });
});

test('what only the service sets of a message cannot be sent', async () => {
  const { send, channel } = await startMessaging();
  const { body } = await send<Message>('POST', `/channels/${channel}/messages`, {
    to: ['a@example.com'],
    text: 'x',
    id: 'msg_mine',
    message_uid: 'mine',
    conversation_id: 'cnv_mine',
    type: 'mine',
    is_inbound: true,
    is_draft: false,
    error_type: 'mine',
    author: { id: 'mine' },
    recipients: [],
    delivery: null,
    blurb: 'mine',
    is_seen: true,
    seen_at: 1,
    created_at: 1,
    _links: {},
  });
  expect(JSON.stringify(body)).not.toContain('mine');
  expect(body).toMatchObject({ is_inbound: false, is_draft: true, error_type: null, is_seen: false });
  expect([body.created_at, body.seen_at, body.recipients.length]).toEqual([NOW, null, 2]);
  expect(body).not.toHaveProperty('delivery');
});

test('a body of very many brackets is taken as quickly as any other', async () => {
  const { send, channel } = await startMessaging();
  const startedAt = performance.now();
  const sent = { to: ['a@example.com'], body: `${'<'.repeat(900_000)}b>x` };
  const { status, body } = await send<Message>('POST', `/channels/${channel}/messages`, sent);
  expect(status).toBe(201);
  expect(body.text.endsWith('< x')).toBe(true);
  expect(performance.now() - startedAt).toBeLessThan(3_000);
});

test('a reply goes to whom the conversation is with, and is its last message then', async () => {
  const { read, send, messagesOf, conversation, tag } = await startMessaging();
  const before = await messagesOf(conversation.id);
  const { status, body } = await send<Message>('POST', `/conversations/${conversation.id}/messages`, {
    body: 'Thank you, it is done.',
    tag_ids: [tag],
  });
  expect(status).toBe(201);
  expect(body).toMatchObject({ is_inbound: false, subject: conversation.subject, author: null });
  expect(body.recipients.at(-1)).toEqual({ handle: conversation.recipient.handle, role: 'to' });
  expect(await messagesOf(conversation.id)).toEqual([...before, body]);
  const after = await read<Conversation>(`/conversations/${conversation.id}`);
  expect(after.last_message).toEqual({
    excerpt: 'Thank you, it is done.',
    is_inbound: false,
    created_at: NOW,
  });
  expect(after.tags.map(({ id }) => id)).toContain(tag);
  expect(after.updated_at).toBe(NOW);
});

test('a reply can name others, and its channel', async () => {
  const { send, conversation, otherChannel } = await startMessaging();
  const { body } = await send<Message>('POST', `/conversations/${conversation.id}/messages`, {
    to: ['someone.else@example.com'],
    cc: ['third@example.com'],
    channel_id: otherChannel,
    subject: 'Another subject',
    text: 'hello',
  });
  expect(body).toMatchObject({ type: 'application', subject: 'Another subject' });
  expect(body.recipients.map(({ handle }) => handle)).toEqual([
    'Parcel tracker',
    'someone.else@example.com',
    'third@example.com',
  ]);
});

test('the messages of a conversation come in pages', async () => {
  const { read, send, messagesOf, conversation } = await startMessaging();
  const path = `/conversations/${conversation.id}/messages`;
  for (const text of ['one', 'two', 'three', 'four']) await send('POST', path, { text });
  const all = await messagesOf(conversation.id);
  expect(all.slice(-4).map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four']);
  const paged: Message[] = [];
  for (let next: string | null = `${path}?limit=3`; next !== null; ) {
    const page: List<Message> = await read(next);
    expect(page._results.length).toBeLessThanOrEqual(3);
    paged.push(...page._results);
    next = page._pagination.next;
  }
  expect(paged).toEqual(all);
});

test('that a message was seen is kept, with the moment of the first time', async () => {
  const { read, send, service, messagesOf, conversation } = await startMessaging();
  const [message, other] = await messagesOf(conversation.id);
  expect(message).toMatchObject({ is_seen: false, seen_at: null });
  const seen = await send<Message>('POST', `/messages/${message?.id}/seen`);
  expect(seen.status).toBe(200);
  expect(seen.body).toEqual({ ...message, is_seen: true, seen_at: NOW });
  await service.advance(10_000);
  await send('POST', `/messages/${message?.message_uid}/seen`, {});
  expect(await read(`/messages/${message?.id}`)).toEqual(seen.body);
  expect(await read(`/messages/${other?.id}`)).toEqual(other);
});

test('what is wrong with a message is refused, and nothing is created', async () => {
  const { read, statusOf, channel, conversation, foreign } = await startMessaging();
  const count = async () => (await read<List<Conversation>>('/conversations?limit=100'))._results.length;
  const before = await count();
  const path = `/channels/${channel}/messages`;
  const to = ['a@example.com'];
  for (const body of [
    {},
    { to },
    { body: 'x' },
    { to: [], body: 'x' },
    { to: 'a@example.com', body: 'x' },
    { to: [''], body: 'x' },
    { to, body: '', text: ' ' },
    { to, body: 'x', author_id: 'tea_none' },
    { to, body: 'x', author_id: foreign.teammate },
    { to, body: 'x', tag_ids: ['tag_none'] },
    { to, body: 'x', options: { tag_ids: [foreign.tag] } },
  ]) {
    expect(await statusOf('POST', path, body), JSON.stringify(body)).toBe(422);
  }
  expect(await statusOf('POST', path, [to])).toBe(400);
  expect(await statusOf('POST', '/channels/cha_none/messages', { to, body: 'x' })).toBe(404);
  expect(await statusOf('POST', `/channels/${foreign.channel}/messages`, { to, body: 'x' })).toBe(404);
  expect(await statusOf('GET', path)).toBe(405);
  const reply = `/conversations/${conversation.id}/messages`;
  for (const body of [
    {},
    { body: 'x', channel_id: 'cha_none' },
    { body: 'x', channel_id: foreign.channel },
  ]) {
    expect(await statusOf('POST', reply, body), JSON.stringify(body)).toBe(422);
  }
  expect(await statusOf('PUT', reply, { body: 'x' })).toBe(405);
  expect(await count()).toBe(before);
  expect(await read(`/conversations/${conversation.id}`)).toEqual(conversation);
});
