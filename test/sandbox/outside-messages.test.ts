import { describe, expect, test } from 'vitest';
import { ann, startMessaging } from './support/messaging.ts';
import { START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;

interface Contact {
  id: string;
  handles: { handle: string }[];
}

describe('Endpoints: creation of messages (our choice)', () => {
  test('An incoming message starts a conversation, and opens it again, wherever it is', async () => {
    const { take, send, incoming, inbox, otherInbox, teammate, messagesOf } = await startMessaging();
    const metadata = { thread_ref: 't-1', headers: { a: 'b' } };
    const sent = { sender: ann, subject: 'Frage', body: 'Wo ist <i>mein</i> Paket?', of_ours: [1], metadata };
    const { message, conversation } = await take('POST', incoming, sent);
    const recipient = { ...ann, role: 'from' };
    const own = { type: 'custom', is_inbound: true, is_draft: false, text: 'Wo ist mein Paket?' };
    expect(message).toMatchObject({ ...sent, ...own, created_at: NOW });
    expect(message.recipients).toEqual([recipient, { handle: 'Shop chat', role: 'to' }]);
    const last_message = { excerpt: own.text, is_inbound: true, created_at: NOW };
    const its = { subject: 'Frage', status: 'unassigned', assignee: null, inbox: { id: inbox } };
    expect(conversation).toMatchObject({ ...its, recipient, last_message });
    expect(await messagesOf(conversation.id)).toEqual([message]);
    const moved = { inbox_id: otherInbox, assignee_id: teammate.id, status: 'archived' };
    await send('PATCH', conversation._links.self, moved);
    const opened = { id: conversation.id, status: 'assigned', inbox: { id: otherInbox } };
    expect((await take('POST', incoming, sent)).conversation).toMatchObject(opened);
  });

  test('A contact is known by a handle in any case, and created if it is new', async () => {
    const { take, read, list, incoming, counts } = await startMessaging();
    const generated = (await list<Contact>('/contacts'))[17];
    const before = counts().contacts ?? 0;
    const from = async (handle = '') => {
      const { conversation } = await take('POST', incoming, { sender: { handle, name: 'Zoe' }, text: 'x' });
      return read<Contact>(conversation.recipient._links.related.contact);
    };
    expect(await from(generated?.handles[0]?.handle.toUpperCase())).toEqual(generated);
    const zoe = await from('zoe.1@example.com');
    expect(zoe).toMatchObject({ name: 'Zoe', handles: [{ handle: 'zoe.1@example.com', source: 'email' }] });
    expect(await from('Zoe.1@Example.com')).toEqual(zoe);
    expect(counts().contacts).toBe(before + 1);
  });

  test('thread_ref, or an external id, or else the contact says which conversation it is', async () => {
    const {
      take,
      incoming,
      inbound,
      outbound,
      external,
      channel,
      otherChannel = '',
    } = await startMessaging();
    const from = (handle: string, thread_ref?: unknown) => ({ sender: { handle }, metadata: { thread_ref } });
    const metadata = { external_conversation_id: 'ext 1/ä' };
    const conversations: string[] = [];
    for (const [place, method, path, sent] of [
      [0, 'POST', incoming, from('ann', 'a')],
      [0, 'POST', incoming, from('bob', 'a')],
      [2, 'POST', incoming, from('ann', 7)],
      [2, 'POST', incoming, from('ann', '7')],
      [4, 'POST', incoming, from('ann')],
      [4, 'POST', incoming, from('ANN')],
      [6, 'POST', incoming, from('bob')],
      [7, 'POST', incoming.replace(channel, otherChannel), from('ann', 'a')],
      [8, 'POST', inbound, { sender: ann, metadata }],
      [8, 'POST', outbound, { to: ['bob'], metadata }],
      [8, 'PUT', external('ext 1/ä', 'm'), { sender: ann }],
      [11, 'PUT', external('ext 2', 'm'), { sender: ann }],
      [12, 'POST', inbound, { sender: ann }],
      [12, 'POST', outbound, { to: [ann.handle.toUpperCase()] }],
      [14, 'POST', outbound, { to: ['bob'] }],
    ] as const) {
      conversations.push((await take(method, path, { ...sent, text: 'x' })).conversation.id);
      expect([path, sent, conversations.indexOf(conversations.at(-1) ?? '')]).toEqual([path, sent, place]);
    }
  });

  test('A message that is brought again under its external id is not doubled or changed', async () => {
    const { take, incoming, inbound, outbound, imported, messagesOf } = await startMessaging();
    for (const path of [incoming, inbound, outbound, imported]) {
      const metadata = { thread_ref: 't', external_conversation_id: path, external_id: 42 };
      const sent = { sender: ann, to: ['ann'], metadata };
      const { message } = await take('POST', path, { ...sent, text: 'first' });
      expect(message).toMatchObject({ is_inbound: path !== outbound, is_draft: false });
      expect((await take('POST', path, { ...sent, text: 'again' })).message).toEqual(message);
      expect(await messagesOf(message.conversation_id)).toEqual([message]);
    }
  });

  test('The external PUT replaces the content of a message, and keeps ids and moment', async () => {
    const { take, external, inbound, service, messagesOf } = await startMessaging();
    const metadata = { external_conversation_id: 'c', external_id: 'm' };
    const first = await take('POST', inbound, { sender: ann, text: 'first', of_first: 1, metadata });
    service.advance(5_000);
    const put = (id: string, text: string) => take('PUT', external('c', id), { sender: ann, text });
    const { message, conversation } = await put('m', 'changed');
    const { id, message_uid, created_at } = first.message;
    expect(message).toMatchObject({ id, message_uid, created_at, text: 'changed', metadata });
    expect(message).not.toHaveProperty('of_first');
    expect(await messagesOf(conversation.id)).toEqual([message]);
    expect(conversation.last_message).toEqual({ excerpt: 'changed', is_inbound: true, created_at });
    await put('n', 'newer');
    expect((await put('m', 'older')).conversation.last_message.excerpt).toBe('newer');
  });

  test('An external message that went out goes to whom it names, or to the contact', async () => {
    const { take, external, expectStatus, teammate } = await startMessaging();
    const sent = { sender: { handle: 'shop-bot' }, text: 'out' };
    await expectStatus(422, [['PUT', external('c', '1'), { ...sent, is_inbound: false }]]);
    const named = { to: ['ann'], is_inbound: false, author_id: teammate.id };
    const { message, conversation } = await take('PUT', external('c', '1'), { ...sent, ...named });
    const recipients = [{ handle: 'shop-bot' }, { handle: 'ann', role: 'to' }];
    expect(conversation.recipient).toMatchObject({ handle: 'ann', role: 'to' });
    expect(message).toMatchObject({ is_inbound: false, author: { id: teammate.id }, recipients });
    const next = await take('PUT', external('c', '2'), { ...sent, metadata: { is_inbound: false } });
    expect(next.message).toMatchObject({ is_inbound: false, author: null, recipients });
  });

  test('An imported message keeps its moment and type, in an archived conversation', async () => {
    const { take, expectStatus, imported, tag, teammate } = await startMessaging();
    const told = { type: 'sms', created_at: NOW - 1_000.5, metadata: { thread_ref: 'old' } };
    const sent = { sender: ann, to: ['shop'], cc: ['copy'], subject: 'Long ago', text: 'It was', ...told };
    const { message, conversation } = await take('POST', imported, { ...sent, tag_ids: [tag] });
    const recipients = [ann, { handle: 'shop', role: 'to' }, { handle: 'copy', role: 'cc' }];
    expect(message).toMatchObject({ ...sent, is_inbound: true, is_draft: false, recipients });
    const its = { subject: 'Long ago', status: 'archived', tags: [{ id: tag }], updated_at: NOW };
    expect(conversation).toMatchObject({ ...its, created_at: told.created_at });
    const went = { is_inbound: false, author_id: teammate.id, created_at: NOW - 500, text: 'Answer' };
    const answer = await take('POST', imported, { ...sent, ...went });
    expect(answer.message).toMatchObject({ is_inbound: false, author: { id: teammate.id } });
    const earlier = await take('POST', imported, { ...sent, created_at: NOW - 2_000 });
    const last_message = { excerpt: 'Answer', is_inbound: false, created_at: NOW - 500 };
    expect(earlier.conversation).toMatchObject({ ...its, id: conversation.id, last_message });
    const alone = await take('POST', imported, { sender: ann, text: 'alone' });
    expect(alone.message).toMatchObject({ type: 'email', created_at: NOW });
    expect(alone.conversation.id).not.toBe(conversation.id);
    await expectStatus(422, [['POST', imported, { ...sent, created_at: NOW + 0.001 }]]);
  });

  test('A channel that fetches its messages itself takes none from outside', async () => {
    const { addChannel, expectStatus, channel, inbox, ...its } = await startMessaging();
    const email = await addChannel(inbox, 'email');
    for (const path of [its.incoming, its.inbound, its.outbound])
      await expectStatus(422, [
        ['POST', path.replace(channel, email), { sender: ann, to: ['ann'], text: 'x' }],
      ]);
  });
});
