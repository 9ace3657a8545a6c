import { expect, test } from 'vitest';
import { type Conversation, type List, type Message, startMessaging } from '../sandbox/support/messaging.ts';

async function start() {
  const parts = await startMessaging();
  const { read, channel, conversation } = parts;
  return {
    ...parts,
    /** Both routes that create messages, each with what it needs. */
    routes: [
      { path: `/channels/${channel}/messages`, sent: { to: ['ann@example.com'], body: 'Hello' } },
      {
        path: `/conversations/${conversation.id}/messages`,
        sent: { to: ['ann@example.com'], body: 'Hello' },
      },
    ],
    draftState: async (id: string) => {
      const { is_draft, error_type } = await read<Message>(`/messages/${id}`);
      return [is_draft, error_type];
    },
  };
}

test('the answer is the draft that will be sent; a second later, to the millisecond, it has been', async () => {
  const { send, service, routes, draftState, messagesOf } = await start();
  for (const { path, sent } of routes) {
    const { status, body: draft } = await send<Message>('POST', path, sent);
    expect(status).toBe(201);
    expect(draft).toMatchObject({ is_draft: true, error_type: null });
    await service.advance(999);
    expect(await draftState(draft.id)).toEqual([true, null]);
    await service.advance(1);
    expect(await draftState(draft.id)).toEqual([false, null]);
    expect((await messagesOf(draft.conversation_id)).at(-1)).toEqual({ ...draft, is_draft: false });
  }
});

test('a message to someone who cannot be reached stays a draft, and error_type says why', async () => {
  const { send, service, routes, draftState, messagesOf } = await start();
  for (const { path, sent } of routes) {
    for (const unreachable of [
      { to: ['nobody@nowhere.invalid'] },
      { to: ['ann@example.com', 'nobody@INVALID'] },
      { to: ['ann@example.com'], cc: ['nobody@a.b.invalid'] },
      { to: ['ann@example.com'], bcc: ['nobody@a.b.invalid'] },
    ]) {
      const { body: draft } = await send<Message>('POST', path, { ...sent, ...unreachable });
      expect(draft).toMatchObject({ is_draft: true, error_type: null });
      await service.advance(999);
      expect(await draftState(draft.id)).toEqual([true, null]);
      await service.advance(1);
      expect(await draftState(draft.id)).toEqual([true, 'recipient_unreachable']);
      expect((await messagesOf(draft.conversation_id)).at(-1)).toMatchObject({
        id: draft.id,
        is_draft: true,
        error_type: 'recipient_unreachable',
      });
      await service.advance(3_600_000);
      expect(await draftState(draft.id)).toEqual([true, 'recipient_unreachable']);
    }
    const { body: near } = await send<Message>('POST', path, { ...sent, to: ['a@invalid.example'] });
    await service.advance(1_000);
    expect(await draftState(near.id)).toEqual([false, null]);
  }
});

test('a message that came in is no draft', async () => {
  const { send, channel, draftState, messagesOf, conversation } = await start();
  const { body } = await send<Message>('POST', `/channels/${channel}/incoming_messages`, {
    sender: { handle: 'x@nowhere.invalid' },
    body: 'hi',
  });
  expect(await draftState(body.message_uid)).toEqual([false, null]);
  for (const message of await messagesOf(conversation.id)) expect(message.is_draft).toBe(false);
});

test('asked to respond-async, both routes answer 202 with the message_uid, which leads to the message', async () => {
  const { send, service, routes, found, draftState } = await start();
  const preferences = [
    'respond-async',
    'Respond-Async; x=1',
    'wait=5, respond-async',
    'handling=lenient,respond-async',
  ];
  for (const { path, sent } of routes) {
    for (const prefer of preferences) {
      const { status, headers, body } = await send<Record<string, string>>('POST', path, sent, { prefer });
      expect(status).toBe(202);
      expect(headers.get('preference-applied')).toBe('respond-async');
      expect(body).toEqual({ status: 'accepted', message_uid: expect.any(String) });
      const { message } = await found(body.message_uid ?? '');
      expect(message).toMatchObject({ ...sent, message_uid: body.message_uid, is_draft: true });
      await service.advance(1_000);
      expect(await draftState(body.message_uid ?? '')).toEqual([false, null]);
    }
    for (const prefer of ['return=minimal', 'respond-asynchronously', 'wait=1; respond-async']) {
      const { status, headers } = await send('POST', path, sent, { prefer });
      expect([status, headers.get('preference-applied')]).toEqual([201, null]);
    }
  }
});

test('asked to respond-async, what is wrong is refused all the same, and nothing is created', async () => {
  const { send, read, routes, privateTag } = await start();
  const before = await read<List<Conversation>>('/conversations?limit=100');
  for (const { path, sent } of routes) {
    const body = { ...sent, tag_ids: [privateTag] };
    expect((await send('POST', path, body, { prefer: 'respond-async' })).status).toBe(422);
  }
  expect(await read('/conversations?limit=100')).toEqual(before);
});

test('a private tag is refused for messages of shared inboxes, with its id, and nothing is created', async () => {
  const { send, read, routes, tag, privateTag, messagesOf, conversation } = await start();
  const [before, messages] = [await read('/conversations?limit=100'), await messagesOf(conversation.id)];
  for (const { path, sent } of routes) {
    for (const tags of [{ tag_ids: [tag, privateTag] }, { options: { tag_ids: [privateTag] } }]) {
      const { status, body } = await send<Record<string, unknown>>('POST', path, { ...sent, ...tags });
      expect(status).toBe(422);
      expect(body).toMatchObject({
        _error: { status: 422, message: expect.stringMatching(`tag_ids: ${privateTag} is private`) },
      });
    }
  }
  expect(await read('/conversations?limit=100')).toEqual(before);
  expect(await messagesOf(conversation.id)).toEqual(messages);
});

test('messages of a private inbox take its own teammate’s tags alone', async () => {
  const { send, read, tag, privateTag, privateInbox } = await start();
  const { body: channel } = await send<{ id: string }>('POST', `/inboxes/${privateInbox}/channels`, {
    type: 'email',
  });
  const post = (tag_ids: string[]) =>
    send<Message>('POST', `/channels/${channel.id}/messages`, { to: ['a@example.com'], text: 'x', tag_ids });
  expect((await post([tag])).status).toBe(422);
  const { status, body } = await post([privateTag]);
  expect(status).toBe(201);
  const conversation = await read<Conversation>(body._links.related.conversation);
  expect(conversation).toMatchObject({ is_private: true, tags: [{ id: privateTag }] });
  const reply = (tag_ids: string[]) =>
    send('POST', `/conversations/${conversation.id}/messages`, { text: 'y', tag_ids });
  expect((await reply([tag])).status).toBe(422);
  expect((await reply([privateTag])).status).toBe(201);
});

test('the tags of a reply must fit the inbox of its channel as well as that of the conversation', async () => {
  const { send, tag, privateTag, privateInbox, conversation } = await start();
  const { body: channel } = await send<{ id: string }>('POST', `/inboxes/${privateInbox}/channels`, {
    type: 'email',
  });
  for (const one of [tag, privateTag]) {
    const sent = { text: 'z', channel_id: channel.id, tag_ids: [one] };
    expect((await send('POST', `/conversations/${conversation.id}/messages`, sent)).status).toBe(422);
  }
  expect(
    (await send('POST', `/conversations/${conversation.id}/messages`, { text: 'z', channel_id: channel.id }))
      .status,
  ).toBe(201);
});

test('a message of a token that acts for a teammate has that author, unless another is named', async () => {
  const { service, company, channel } = await start();
  const application = await service.application({ kind: 'tool-protocol' });
  const { access_token } = await service.install(company, application);
  const admin = company.teammates.find(({ is_admin }) => is_admin);
  const other = company.teammates.find(({ id }) => id !== admin?.id);
  const post = async (body: object) =>
    (
      await service.call<Message>('POST', `/channels/${channel}/messages`, access_token, {
        to: ['a@example.com'],
        text: 'x',
        ...body,
      })
    ).body.author?.id;
  expect(await post({})).toBe(admin?.id);
  expect(await post({ author_id: other?.id })).toBe(other?.id);
});
