import { expect, test } from 'vitest';
import type { List } from '../sandbox/support/messaging.ts';
import { ann, startOutside } from '../sandbox/support/outside.ts';
import { at, START_MS } from '../sandbox/support/test-sandbox.ts';

const NOW = START_MS / 1000;

interface Contact {
  id: string;
  name: string;
  handles: { handle: string; source: string }[];
}

test('an incoming message starts a conversation with a contact who is created, and is read back as it was sent', async () => {
  const { take, read, incoming, inbox, messagesOf } = await startOutside();
  const sent = {
    sender: ann,
    subject: 'Frage',
    body: '<p>Wo ist <i>mein</i> Paket?</p>',
    attachments: [{ name: 'photo.png' }],
    metadata: { thread_ref: 't-1', headers: { a: 'b' } },
  };
  const { message, conversation } = await take('POST', incoming, sent);
  expect(message).toMatchObject({
    ...sent,
    type: 'custom',
    is_inbound: true,
    is_draft: false,
    text: 'Wo ist mein Paket?',
    created_at: NOW,
  });
  expect(message.recipients).toEqual([
    { ...ann, role: 'from' },
    { handle: 'Shop chat', role: 'to' },
  ]);
  expect(conversation).toMatchObject({
    subject: 'Frage',
    status: 'unassigned',
    assignee: null,
    inbox: { id: inbox },
    recipient: { handle: ann.handle, name: ann.name, role: 'from' },
    last_message: { excerpt: 'Wo ist mein Paket?', is_inbound: true, created_at: NOW },
  });
  expect(await messagesOf(conversation.id)).toEqual([message]);
  const contact = await read<Contact>(conversation.recipient._links.related.contact ?? '');
  expect(contact).toMatchObject({ name: ann.name, handles: [{ handle: ann.handle, source: 'custom' }] });
});

test('a contact is known by a handle in any case; generated contacts by theirs', async () => {
  const { take, read, incoming, counts } = await startOutside();
  const generated = at((await read<List<Contact>>('/contacts'))._results, 17);
  const before = (await counts())?.contacts ?? 0;
  let threads = 0;
  const from = async (handle: string) => {
    threads += 1;
    const sent = { sender: { handle }, text: 'x', metadata: { thread_ref: threads } };
    const { conversation } = await take('POST', incoming, sent);
    return (await read<Contact>(conversation.recipient._links.related.contact ?? '')).id;
  };
  expect(await from(at(generated.handles, 0).handle.toUpperCase())).toBe(generated.id);
  expect((await counts())?.contacts).toBe(before);
  const first = await from('new.one@example.com');
  expect((await counts())?.contacts).toBe(before + 1);
  expect(await from('New.One@Example.com')).toBe(first);
  expect(await from('zoe.1@example.com')).not.toBe(first);
  expect((await counts())?.contacts).toBe(before + 2);
  expect(await read<Contact>(`/contacts/${first}`)).toMatchObject({
    name: 'new.one@example.com',
    handles: [{ handle: 'new.one@example.com', source: 'email' }],
  });
});

test('incoming messages with the same thread_ref are one conversation; without one, those of the same sender are', async () => {
  const { take, incoming, otherChannel, messagesOf } = await startOutside();
  const post = async (handle: string, thread_ref?: string | number, path = incoming) => {
    const metadata = thread_ref === undefined ? {} : { thread_ref };
    const { conversation } = await take('POST', path, { sender: { handle }, text: 'x', metadata });
    return conversation.id;
  };
  const byThread = await post('ann', 'a');
  expect(await post('bob', 'a')).toBe(byThread);
  expect(await post('ann', 'b')).not.toBe(byThread);
  expect(await post('ann', 7)).toBe(await post('ann', '7'));
  const bySender = await post('ann');
  expect(await post('ANN')).toBe(bySender);
  expect(await post('bob')).not.toBe(bySender);
  expect(bySender).not.toBe(byThread);
  expect(await post('ann', 'a', `/channels/${otherChannel}/incoming_messages`)).not.toBe(byThread);
  expect(await messagesOf(byThread)).toHaveLength(2);
});

test('inbound and outbound messages and the external PUT share a conversation by its id in the other system', async () => {
  const { take, inbound, outbound, external, messagesOf } = await startOutside();
  const metadata = { external_conversation_id: 'ext 1/ä', external_id: 'm1' };
  const first = await take('POST', inbound, { sender: ann, body: 'in', metadata });
  const second = await take('POST', outbound, {
    to: [ann.handle],
    body: 'out',
    metadata: { ...metadata, external_id: 'm2' },
  });
  const third = await take('PUT', external('ext 1/ä', 'm3'), { sender: ann, body: 'put' });
  const { id } = first.conversation;
  expect([second.conversation.id, third.conversation.id]).toEqual([id, id]);
  expect(second.message).toMatchObject({ is_inbound: false, is_draft: false, error_type: null });
  expect(second.message.recipients).toEqual([
    { handle: 'Shop chat', role: 'from' },
    { handle: ann.handle, role: 'to' },
  ]);
  expect(third.message).toMatchObject({
    is_inbound: true,
    metadata: { external_conversation_id: 'ext 1/ä', external_id: 'm3' },
  });
  expect((await messagesOf(id)).map(({ body }) => body)).toEqual(['in', 'out', 'put']);
  const elsewhere = await take('PUT', external('ext 2', 'm3'), { sender: ann, body: 'put' });
  expect(elsewhere.conversation.id).not.toBe(id);
  expect(elsewhere.message.id).not.toBe(third.message.id);
});

test('without an id of the conversation, those with the same contact are one', async () => {
  const { take, inbound, outbound } = await startOutside();
  const first = await take('POST', inbound, { sender: ann, body: 'in' });
  const second = await take('POST', outbound, { to: [ann.handle.toUpperCase()], body: 'out' });
  const other = await take('POST', outbound, { to: ['someone else'], body: 'out' });
  expect(second.conversation.id).toBe(first.conversation.id);
  expect(other.conversation.id).not.toBe(first.conversation.id);
});

test('a message that is brought again under its id is not doubled, and not changed', async () => {
  const { take, incoming, inbound, outbound, messagesOf } = await startOutside();
  const external_id = 42;
  for (const [path, body] of [
    [incoming, { sender: ann, metadata: { thread_ref: 't', external_id } }],
    [inbound, { sender: ann, metadata: { external_conversation_id: 'in', external_id } }],
    [outbound, { to: ['ann'], metadata: { external_conversation_id: 'out', external_id } }],
  ] as const) {
    const first = await take('POST', path, { ...body, text: 'first' });
    const again = await take('POST', path, { ...body, text: 'again' });
    expect(again.message).toEqual(first.message);
    expect(await messagesOf(first.conversation.id)).toEqual([first.message]);
  }
});

test('the external PUT puts another content in a message’s place, which keeps ids, moment and conversation', async () => {
  const { take, external, inbound, service, messagesOf } = await startOutside();
  const metadata = { external_conversation_id: 'c', external_id: 'm' };
  const first = await take('POST', inbound, { sender: ann, body: 'first', of_first: 1, metadata });
  await service.advance(5_000);
  const changed = await take('PUT', external('c', 'm'), { sender: ann, body: 'changed', of_second: 2 });
  const { id, message_uid, created_at } = first.message;
  expect(changed.message).toMatchObject({ id, message_uid, created_at, body: 'changed', of_second: 2 });
  expect(changed.message).not.toHaveProperty('of_first');
  expect(await messagesOf(first.conversation.id)).toEqual([changed.message]);
  expect(changed.conversation.last_message).toEqual({ excerpt: 'changed', is_inbound: true, created_at });
  const newer = await take('PUT', external('c', 'n'), { sender: ann, body: 'newer' });
  expect(newer.conversation.last_message.excerpt).toBe('newer');
  await take('PUT', external('c', 'same moment'), { sender: ann, body: 'newest' });
  await take('PUT', external('c', 'n'), { sender: ann, body: 'newer still' });
  const older = await take('PUT', external('c', 'm'), { sender: ann, body: 'older' });
  expect(older.conversation.last_message.excerpt).toBe('newest');
});

test('the external PUT takes messages that went out: to whom the conversation is with, or who is named', async () => {
  const { take, external, statusOf, teammate } = await startOutside();
  const sender = { handle: 'shop-bot' };
  const sent = { sender, body: 'out', is_inbound: false };
  expect(await statusOf('PUT', external('new', '1'), sent)).toBe(422);
  const named = await take('PUT', external('new', '1'), { ...sent, to: ['ann'], author_id: teammate.id });
  expect(named.conversation.recipient).toMatchObject({ handle: 'ann', role: 'to' });
  expect(named.message).toMatchObject({
    is_inbound: false,
    author: { id: teammate.id },
    recipients: [
      { handle: 'shop-bot', role: 'from' },
      { handle: 'ann', role: 'to' },
    ],
  });
  const next = await take('PUT', external('new', '2'), {
    sender,
    body: 'x',
    metadata: { is_inbound: false },
  });
  expect(next.message.recipients.at(-1)).toEqual({ handle: 'ann', role: 'to' });
});

test('a message that comes in opens an archived conversation, wherever it was moved', async () => {
  const { take, send, incoming, otherInbox, teammate } = await startOutside();
  const sent = { sender: ann, text: 'x' };
  const { conversation } = await take('POST', incoming, sent);
  const path = `/conversations/${conversation.id}`;
  await send('PATCH', path, { status: 'archived', assignee_id: teammate.id, inbox_id: otherInbox });
  const again = await take('POST', incoming, sent);
  expect(again.conversation).toMatchObject({
    id: conversation.id,
    status: 'assigned',
    inbox: { id: otherInbox },
  });
  await send('PATCH', path, { status: 'spam', assignee_id: null });
  expect((await take('POST', incoming, sent)).conversation.status).toBe('unassigned');
});

test('what is wrong is refused by each of the routes, and nothing is created', async () => {
  const { send, statusOf, counts, incoming, inbound, outbound, external, inbox, foreign, privateTag } =
    await startOutside();
  const before = await counts();
  const imported = `/inboxes/${inbox}/imported_messages`;
  const good = { sender: ann, to: ['ann'], body: 'x' };
  for (const [method, path] of [
    ['POST', incoming],
    ['POST', inbound],
    ['POST', outbound],
    ['PUT', external('c', 'm')],
    ['POST', imported],
  ] as const) {
    expect(await statusOf(method, path, {})).toBe(422);
    expect(await statusOf(method, path, { ...good, body: undefined })).toBe(422);
    expect(await statusOf(method, path, { ...good, metadata: 'x' })).toBe(422);
    expect(await statusOf(method, path, [good])).toBe(400);
    const lacking = path === outbound ? { to: [] } : { sender: { name: 'no handle' } };
    expect(await statusOf(method, path, { ...good, ...lacking })).toBe(422);
    expect(await statusOf('DELETE', path)).toBe(405);
    for (const id of ['cha_none', 'inb_none', foreign.channel, foreign.inbox]) {
      expect(await statusOf(method, path.replace(/(cha|inb)_\w+/, id), good)).toBe(404);
    }
  }
  expect(await statusOf('POST', outbound, { ...good, author_id: foreign.teammate })).toBe(422);
  for (const wrong of [
    { author_id: 'tea_none', is_inbound: false },
    { tag_ids: ['tag_none'] },
    { tag_ids: [privateTag] },
    { created_at: NOW + 0.001 },
    { created_at: 'yesterday' },
    { is_inbound: false, to: [] },
  ]) {
    expect(await statusOf('POST', imported, { ...good, ...wrong }), JSON.stringify(wrong)).toBe(422);
  }
  const { body: channel } = await send<{ id: string }>('POST', `/inboxes/${inbox}/channels`, {
    type: 'email',
  });
  for (const path of ['incoming_messages', 'inbound_messages', 'outbound_message']) {
    expect(await statusOf('POST', `/channels/${channel.id}/${path}`, good)).toBe(422);
  }
  expect(await statusOf('PUT', external('c', 'm').replace(/cha_\w+/, channel.id), good)).toBe(422);
  expect(await counts()).toEqual({ ...before, channels: (before?.channels ?? 0) + 1 });
});

test('what was taken in is part of a snapshot: its references lead to nothing that came later', async () => {
  const { take, service, incoming, messagesOf } = await startOutside();
  const sent = { sender: ann, text: 'x', metadata: { thread_ref: 't' } };
  const { conversation } = await take('POST', incoming, sent);
  const { id } = await service.done<{ id: string }>('snapshot', {});
  const later = await take('POST', incoming, { ...sent, metadata: { thread_ref: 'later' } });
  await take('POST', incoming, sent);
  await service.done('restore', { id });
  expect(await messagesOf(conversation.id)).toHaveLength(1);
  expect((await take('POST', incoming, sent)).conversation.id).toBe(conversation.id);
  expect(await messagesOf(conversation.id)).toHaveLength(2);
  const fresh = await take('POST', incoming, { ...sent, metadata: { thread_ref: 'later' } });
  expect(fresh.conversation.id).toBe(later.conversation.id);
  expect(await messagesOf(fresh.conversation.id)).toHaveLength(1);
});

test('messages are gone with their conversation; the next one under its references starts another', async () => {
  const { take, service, statusOf, company, incoming, messagesOf } = await startOutside();
  const sent = { sender: ann, text: 'x', metadata: { thread_ref: 't', external_id: 1 } };
  const before = await take('POST', incoming, sent);
  await service.done(`companies/${company.id}/records`, { resource: 'conversations', delete: 10_000 });
  for (const id of [before.message.id, before.message.message_uid]) {
    expect(await statusOf('GET', `/messages/${id}`)).toBe(404);
    expect(await statusOf('POST', `/messages/${id}/seen`)).toBe(404);
  }
  expect(await statusOf('GET', `/conversations/${before.conversation.id}/messages`)).toBe(404);
  const after = await take('POST', incoming, sent);
  expect(after.conversation.id).not.toBe(before.conversation.id);
  expect(after.conversation.recipient).toEqual(before.conversation.recipient);
  expect(await messagesOf(after.conversation.id)).toEqual([after.message]);
  expect((await take('POST', incoming, sent)).message).toEqual(after.message);
});
