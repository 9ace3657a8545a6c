import { describe, expect, test } from 'vitest';
import { ann, type Request, startMessaging } from './support/messaging.ts';
import { at, START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;

interface Contact {
  id: string;
  handles: { handle: string }[];
}

/** Takes messages in, and answers for each the place of the first one in the same conversation. */
async function threadsOf({ take }: Awaited<ReturnType<typeof startMessaging>>, requests: readonly Request[]) {
  const ids: string[] = [];
  for (const [method, path, sent] of requests) ids.push((await take(method, path, sent)).conversation.id);
  return ids.map((id) => ids.indexOf(id));
}

describe('Endpoints: creation of messages (our choice)', () => {
  test('an incoming message starts a conversation, and is read back as it was sent', async () => {
    const { take, incoming, inbox, messagesOf } = await startMessaging();
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
  });

  test('a contact is known by a handle in any case, and created if it is new', async () => {
    const { take, read, list, incoming, counts } = await startMessaging();
    const generated = at(await list<Contact>('/contacts'), 17);
    const before = (await counts())?.contacts ?? 0;
    const from = async (handle: string) => {
      const { conversation } = await take('POST', incoming, { sender: { handle, name: 'Zoe' }, text: 'x' });
      return read<Contact>(conversation.recipient._links.related.contact);
    };
    expect(await from(at(generated.handles, 0).handle.toUpperCase())).toEqual(generated);
    const zoe = await from('zoe.1@example.com');
    expect(zoe).toMatchObject({ name: 'Zoe', handles: [{ handle: 'zoe.1@example.com', source: 'email' }] });
    expect(await from('Zoe.1@Example.com')).toEqual(zoe);
    expect((await counts())?.contacts).toBe(before + 1);
  });

  test('incoming messages of one thread_ref, or else of one sender, are one conversation', async () => {
    const parts = await startMessaging();
    const bring = (handle: string, thread_ref?: string | number, path = parts.incoming): Request => [
      'POST',
      path,
      { sender: { handle }, text: 'x', metadata: { thread_ref } },
    ];
    const byThread = [
      bring('ann', 'a'),
      bring('bob', 'a'),
      bring('ann', 'b'),
      bring('ann', 7),
      bring('bob', '7'),
    ];
    const bySender = [bring('ann'), bring('ANN'), bring('bob')];
    const elsewhere = bring('ann', 'a', `/channels/${parts.otherChannel}/incoming_messages`);
    const places = await threadsOf(parts, [...byThread, ...bySender, elsewhere]);
    expect(places).toEqual([0, 0, 2, 3, 3, 5, 5, 7, 8]);
  });

  test('inbound, outbound and external messages share a conversation by its external id', async () => {
    const parts = await startMessaging();
    const { inbound, outbound, external } = parts;
    const metadata = { external_conversation_id: 'ext 1/ä' };
    const places = await threadsOf(parts, [
      ['POST', inbound, { sender: ann, text: 'x', metadata }],
      ['POST', outbound, { to: ['bob'], text: 'x', metadata }],
      ['PUT', external('ext 1/ä', 'm'), { sender: ann, text: 'x' }],
      ['PUT', external('ext 2', 'm'), { sender: ann, text: 'x' }],
      ['POST', inbound, { sender: ann, text: 'without an id' }],
      ['POST', outbound, { to: [ann.handle.toUpperCase()], text: 'with the same contact' }],
      ['POST', outbound, { to: ['bob'], text: 'with another contact' }],
    ]);
    expect(places).toEqual([0, 0, 0, 3, 4, 4, 6]);
    const { message } = await parts.take('POST', outbound, { to: ['ann'], text: 'out' });
    expect(message).toMatchObject({ to: ['ann'], text: 'out', is_inbound: false, is_draft: false });
    expect(message.recipients.map(({ handle }) => handle)).toEqual(['Shop chat', 'ann']);
  });

  test('a message that is brought again under its external id is not doubled or changed', async () => {
    const { take, incoming, inbound, outbound, inbox, messagesOf } = await startMessaging();
    for (const path of [incoming, inbound, outbound, `/inboxes/${inbox}/imported_messages`]) {
      const metadata = { thread_ref: 't', external_conversation_id: path, external_id: 42 };
      const sent = { sender: ann, to: ['ann'], metadata };
      const { message } = await take('POST', path, { ...sent, text: 'first' });
      expect((await take('POST', path, { ...sent, text: 'again' })).message).toEqual(message);
      expect(await messagesOf(message.conversation_id)).toEqual([message]);
    }
  });

  test('the external PUT replaces the content of a message, and keeps ids and moment', async () => {
    const { take, external, inbound, service, messagesOf } = await startMessaging();
    const metadata = { external_conversation_id: 'c', external_id: 'm' };
    const first = await take('POST', inbound, { sender: ann, text: 'first', of_first: 1, metadata });
    await service.advance(5_000);
    const put = (id: string, text: string) => take('PUT', external('c', id), { sender: ann, text });
    const { message, conversation } = await put('m', 'changed');
    const { id, message_uid, created_at } = first.message;
    expect(message).toMatchObject({ id, message_uid, created_at, text: 'changed', metadata });
    expect(message).not.toHaveProperty('of_first');
    expect(await messagesOf(conversation.id)).toEqual([message]);
    expect(conversation.last_message).toEqual({ excerpt: 'changed', is_inbound: true, created_at });
    await put('n', 'newer');
    await put('of the same moment', 'newest');
    await put('n', 'newer still');
    expect((await put('m', 'older')).conversation.last_message.excerpt).toBe('newest');
  });

  test('an external message that went out goes to whom it names, or the conversation is with', async () => {
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

  test('a message that comes in opens its conversation, wherever that was moved', async () => {
    const { take, send, incoming, otherInbox, teammate } = await startMessaging();
    const sent = { sender: ann, text: 'x' };
    const { id, _links } = (await take('POST', incoming, sent)).conversation;
    await send('PATCH', _links.self, { inbox_id: otherInbox, assignee_id: teammate.id, status: 'archived' });
    const { conversation } = await take('POST', incoming, sent);
    expect(conversation).toMatchObject({ id, status: 'assigned', inbox: { id: otherInbox } });
  });

  test('an imported message keeps its moment and type, in an archived conversation', async () => {
    const { take, inbox, tag, teammate } = await startMessaging();
    const path = `/inboxes/${inbox}/imported_messages`;
    const told = { type: 'sms', created_at: NOW - 1_000.5, metadata: { thread_ref: 'old' } };
    const sent = { sender: ann, to: ['shop'], cc: ['copy'], subject: 'Long ago', text: 'It was', ...told };
    const { message, conversation } = await take('POST', path, { ...sent, tag_ids: [tag] });
    const recipients = [ann, { handle: 'shop', role: 'to' }, { handle: 'copy', role: 'cc' }];
    expect(message).toMatchObject({ ...sent, is_inbound: true, is_draft: false, recipients });
    const { id, created_at } = conversation;
    const its = { subject: 'Long ago', status: 'archived', tags: [{ id: tag }], updated_at: NOW };
    expect(conversation).toMatchObject({ ...its, created_at: told.created_at });
    const went = { is_inbound: false, author_id: teammate.id, created_at: NOW - 500 };
    const answer = await take('POST', path, { ...sent, ...went, text: 'Answer' });
    expect(answer.message).toMatchObject({ is_inbound: false, author: { id: teammate.id } });
    const earlier = await take('POST', path, { ...sent, created_at: NOW - 2_000 });
    const last_message = { excerpt: 'Answer', is_inbound: false, created_at: NOW - 500 };
    expect(earlier.conversation).toMatchObject({ ...its, id, created_at, last_message });
    const alone = await take('POST', path, { sender: ann, text: 'alone' });
    expect(alone.message).toMatchObject({ type: 'email', created_at: NOW });
    expect(alone.conversation.id).not.toBe(id);
  });

  test('a channel of another kind takes no messages, and no import is of the future', async () => {
    const { send, expectStatus, counts, incoming, inbound, outbound, channel, inbox } =
      await startMessaging();
    const path = `/inboxes/${inbox}/channels`;
    const email = (await send<{ id: string }>('POST', path, { type: 'email' })).body.id;
    const before = await counts();
    const good = { sender: ann, to: ['ann'], text: 'x', created_at: NOW + 0.001 };
    const paths = [incoming, inbound, outbound].map((path) => path.replace(channel, email));
    for (const path of [...paths, `/inboxes/${inbox}/imported_messages`]) {
      await expectStatus(422, [['POST', path, good]]);
    }
    expect(await counts()).toEqual(before);
  });
});

describe('Messages from outside, and what becomes of their conversation', () => {
  test('a restore forgets the messages after the snapshot, and their references', async () => {
    const { take, service, incoming, messagesOf } = await startMessaging();
    const bring = async (thread_ref: string) =>
      (await take('POST', incoming, { sender: ann, text: 'x', metadata: { thread_ref } })).conversation.id;
    const early = await bring('early');
    const { id } = await service.done<{ id: string }>('snapshot', {});
    await bring('late');
    await service.done('restore', { id });
    expect(await bring('early')).toBe(early);
    expect(await messagesOf(await bring('late'))).toHaveLength(1);
  });

  test('they are gone with a deleted conversation, and their references start another', async () => {
    const { take, service, expectStatus, company, incoming, messagesOf } = await startMessaging();
    const sent = { sender: ann, text: 'x', metadata: { thread_ref: 't', external_id: 1 } };
    const { message, conversation } = await take('POST', incoming, sent);
    await service.done(`companies/${company.id}/records`, { resource: 'conversations', delete: 10_000 });
    await expectStatus(404, [['GET', `/messages/${message.id}`]]);
    const after = await take('POST', incoming, sent);
    expect(after.conversation.id).not.toBe(conversation.id);
    expect(await messagesOf(after.conversation.id)).toEqual([after.message]);
  });
});
