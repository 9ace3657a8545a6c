import { expect, test } from 'vitest';
import { type Conversation, type List, type Message, startMessaging } from '../sandbox/support/messaging.ts';

interface Channel {
  id: string;
  is_private: boolean;
}

/** A conversation in a private inbox and a channel of it, and who may not reach them. */
async function start() {
  const parts = await startMessaging();
  const { service, company, send, privateInbox, conversation } = parts;
  const { access_token } = await service.install(company);
  const moved = await send('PATCH', `/conversations/${conversation.id}`, { inbox_id: privateInbox });
  const channel = await send<Channel>('POST', `/inboxes/${privateInbox}/channels`, { type: 'custom' });
  const ask = async (method: string, path: string, body?: unknown) =>
    (await service.call<Record<string, unknown>>(method, path, access_token, body)).status;
  return { ...parts, moved, privateChannel: channel.body, oauth: access_token, ask };
}

test('a conversation that is moved to a private inbox is private, and shared again when it is moved back', async () => {
  const { send, moved, inbox, privateInbox } = await start();
  expect(moved.status).toBe(200);
  expect(moved.body).toMatchObject({ is_private: true, inbox: { id: privateInbox } });
  const back = await send('PATCH', `/conversations/${moved.body.id}`, { inbox_id: inbox, tag_ids: [] });
  expect(back.body).toMatchObject({ is_private: false, inbox: { id: inbox } });
});

test('OAuth tokens do not reach a private conversation or its messages by any route', async () => {
  const { read, ask, conversation, messagesOf, oauth, tag, teammate } = await start();
  const path = `/conversations/${conversation.id}`;
  const [message] = await messagesOf(conversation.id);
  const before = await read(path);
  const link = (await read<List<{ id: string }>>('/links'))._results.map(({ id }) => id);
  for (const [method, route, body] of [
    ['GET', path],
    ['PATCH', path, { subject: 'x' }],
    ['PUT', `${path}/assignee`, { assignee_id: teammate.id }],
    ['PATCH', `${path}/reminders`, { teammate_id: teammate.id, scheduled_at: null }],
    ['POST', `${path}/tags`, { tag_ids: [tag] }],
    ['DELETE', `${path}/tags`, { tag_ids: [tag] }],
    ['POST', `${path}/links`, { link_ids: link }],
    ['DELETE', `${path}/links`, { link_ids: link }],
    ['GET', `${path}/messages`],
    ['POST', `${path}/messages`, { text: 'x' }],
    ['GET', `/messages/${message?.id}`],
    ['GET', `/messages/${message?.message_uid}`],
    ['POST', `/messages/${message?.id}/seen`],
  ] as const) {
    expect([method, route, await ask(method, route, body)]).toEqual([method, route, 403]);
  }
  expect(await read(path)).toEqual(before);
  const words = encodeURIComponent(`${conversation.subject} ${conversation.recipient.handle}`);
  for (const list of ['/conversations?limit=100', `/conversations/search/${words}?limit=100`]) {
    const ids = async (token?: string) =>
      (await read<List<Conversation>>(list, token))._results.map(({ id }) => id);
    expect(await ids(oauth)).not.toContain(conversation.id);
    expect(await ids()).toContain(conversation.id);
  }
});

test('OAuth tokens do not reach a private inbox or its channels by any route', async () => {
  const { read, ask, privateChannel, privateInbox, oauth, company } = await start();
  expect(privateChannel.is_private).toBe(true);
  const sent = { sender: { handle: 'ann' }, to: ['ann'], text: 'x', type: 'custom' };
  for (const [method, route] of [
    ['GET', `/channels/${privateChannel.id}`],
    ['POST', `/channels/${privateChannel.id}/messages`],
    ['POST', `/channels/${privateChannel.id}/incoming_messages`],
    ['POST', `/channels/${privateChannel.id}/inbound_messages`],
    ['POST', `/channels/${privateChannel.id}/outbound_message`],
    ['PUT', `/channels/${privateChannel.id}/conversations/c/messages/m`],
    ['GET', `/inboxes/${privateInbox}/channels`],
    ['POST', `/inboxes/${privateInbox}/channels`],
    ['POST', `/inboxes/${privateInbox}/imported_messages`],
  ] as const) {
    const status = await ask(method, route, method === 'GET' ? undefined : sent);
    expect([method, route, status]).toEqual([method, route, 403]);
  }
  const ids = async (token?: string) =>
    (await read<List<Channel>>('/channels', token))._results.map(({ id }) => id);
  expect(await ids(oauth)).toEqual(company.channels);
  expect(await ids()).toEqual([...company.channels, privateChannel.id]);
});

test('OAuth tokens cannot name a private inbox, channel or tag in a body', async () => {
  const { ask, read, conversations, privateInbox, privateChannel, privateTag, channel } = await start();
  const other = conversations[1];
  const path = `/conversations/${other?.id}`;
  expect(await ask('PATCH', path, { inbox_id: privateInbox })).toBe(403);
  expect(await ask('PATCH', path, { tag_ids: [privateTag] })).toBe(403);
  expect(await ask('POST', `${path}/tags`, { tag_ids: [privateTag] })).toBe(403);
  expect(await ask('DELETE', `${path}/tags`, { tag_ids: [privateTag] })).toBe(403);
  expect(await ask('POST', `${path}/messages`, { text: 'x', channel_id: privateChannel.id })).toBe(403);
  expect(
    await ask('POST', `/channels/${channel}/messages`, { to: ['a'], text: 'x', tag_ids: [privateTag] }),
  ).toBe(403);
  expect(await read(path)).toEqual(other);
});

test('what comes in by a channel of a private inbox is private; OAuth tokens use the shared ones', async () => {
  const { send, found, ask, privateChannel, channel } = await start();
  const sent = { sender: { handle: 'ann' }, text: 'x' };
  const path = `/channels/${privateChannel.id}/incoming_messages`;
  const { body } = await send<{ message_uid: string }>('POST', path, sent);
  const { conversation } = await found(body.message_uid);
  expect(conversation.is_private).toBe(true);
  expect(await ask('GET', `/conversations/${conversation.id}`)).toBe(403);
  expect(await ask('GET', `/messages/${body.message_uid}`)).toBe(403);
  expect(await ask('POST', `/channels/${channel}/incoming_messages`, sent)).toBe(202);
});

test('a message that an OAuth token brings into a private conversation is accepted, and out of its reach', async () => {
  const { service, send, found, oauth, channel, privateInbox } = await start();
  const path = `/channels/${channel}/incoming_messages`;
  const sent = { sender: { handle: 'ann' }, text: 'x' };
  const bring = async () =>
    (await service.call<{ message_uid: string }>('POST', path, oauth, sent)).body.message_uid;
  const first = await found(await bring());
  await send('PATCH', `/conversations/${first.conversation.id}`, { inbox_id: privateInbox });
  const uid = await bring();
  expect((await found(uid)).conversation.id).toBe(first.conversation.id);
  expect((await service.call<Message>('GET', `/messages/${uid}`, oauth)).status).toBe(403);
});
