import { describe, expect, test } from 'vitest';
import { ann, type Message, startMessaging } from './support/messaging.ts';
import { START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;
const FAILED = [true, 'recipient_unreachable'];

/** Both routes that create messages, and a body that they take. */
async function start() {
  const parts = await startMessaging();
  const create = `/channels/${parts.channel}/messages`;
  const reply = `/conversations/${parts.conversation.id}/messages`;
  const stateAfter = async (ms: number, id: string) => {
    await parts.service.advance(ms);
    const { is_draft, error_type } = await parts.read<Message>(`/messages/${id}`);
    return [is_draft, error_type];
  };
  const sent = { sender: ann, to: ['ann@example.com'], body: 'Hello' };
  return { ...parts, sent, create, reply, both: [create, reply], stateAfter };
}

describe('States: message drafts', () => {
  test('A draft has is_draft true until it is sent, or for good and with error_type', async () => {
    const { send, both, sent, stateAfter } = await start();
    for (const path of both) {
      for (const [to, later] of [
        ['ann@example.com', [false, null]],
        ['ann@nowhere.invalid', FAILED],
      ] as const) {
        const { body } = await send<Message>('POST', path, { ...sent, to: [to] });
        expect([body.is_draft, body.error_type]).toEqual([true, null]);
        expect(await stateAfter(60_000, body.id)).toEqual(later);
      }
    }
  });

  test('A message that was received has is_draft false', async () => {
    const { take, incoming, messagesOf, conversation } = await start();
    const { message } = await take('POST', incoming, { sender: { handle: 'x@nowhere.invalid' }, text: 'x' });
    for (const { is_draft, error_type } of [message, ...(await messagesOf(conversation.id))]) {
      expect([is_draft, error_type]).toEqual([false, null]);
    }
  });
});

describe('States: message drafts (our choice)', () => {
  test('A draft is sent after a second, or fails if an address of it ends in .invalid', async () => {
    const { send, create, sent, stateAfter } = await start();
    for (const [addressees, state] of [
      [{ to: ['ann@invalid.example'] }, [false, null]],
      [{ to: ['ann@example.com', 'nobody@INVALID'] }, FAILED],
      [{ cc: ['nobody@a.b.invalid'] }, FAILED],
      [{ bcc: ['nobody@a.b.invalid'] }, FAILED],
    ] as const) {
      const { body } = await send<Message>('POST', create, { ...sent, ...addressees });
      expect(await stateAfter(999, body.id)).toEqual([true, null]);
      expect(await stateAfter(1, body.id)).toEqual(state);
    }
  });
});

describe('Endpoints: creation of messages', () => {
  test('The answer is the draft that will be sent, or asynchronously its message_uid', async () => {
    const { send, found, both, sent } = await start();
    for (const path of both) {
      const { status, body } = await send<Message>('POST', path, sent);
      expect([status, body]).toEqual([201, (await found(body.id)).message]);
      expect(body).toMatchObject({ ...sent, is_draft: true, is_inbound: false });
      const accepted = await send<Message>('POST', path, sent, { prefer: 'respond-async' });
      expect([accepted.status, Object.keys(accepted.body)]).toEqual([202, ['status', 'message_uid']]);
      const { message } = await found(accepted.body.message_uid);
      expect(message).toMatchObject({ ...sent, message_uid: accepted.body.message_uid, is_draft: true });
    }
  });

  test('Tags must fit the inboxes of a message; otherwise it is refused and not created', async () => {
    const { send, expectStatus, counts, both, reply, sent, tag, privateTag, ...its } = await start();
    const channel_id = await its.addPrivateChannel('email');
    const create = `/channels/${channel_id}/messages`;
    const before = await counts();
    for (const path of [...both, `/inboxes/${its.inbox}/imported_messages`]) {
      const { body } = await send('POST', path, { ...sent, tag_ids: [tag, privateTag] });
      const message = expect.stringMatching(`tag_ids: ${privateTag} is private`);
      expect(body).toMatchObject({ _error: { status: 422, message } });
    }
    await expectStatus(422, [
      ['POST', create, { ...sent, tag_ids: [tag] }],
      ['POST', create, { ...sent, options: { tag_ids: [tag] } }],
      ['POST', reply, { ...sent, channel_id, tag_ids: [tag] }],
      ['POST', reply, { ...sent, channel_id, tag_ids: [privateTag] }],
    ]);
    expect(await counts()).toEqual(before);
    await expectStatus(201, [['POST', reply, { ...sent, channel_id }]]);
    const { body } = await send<Message>('POST', create, { ...sent, tag_ids: [privateTag] });
    const { conversation } = await its.found(body.id);
    expect(conversation).toMatchObject({ is_private: true, tags: [{ id: privateTag }] });
  });
});

describe('Endpoints: creation of messages (our choice)', () => {
  test('Prefer: respond-async asks for the asynchronous form (RFC 7240)', async () => {
    const { send, create, sent } = await start();
    for (const [prefer, ...expected] of [
      ['wait=5, Respond-Async; x=1', 202, 'respond-async'],
      ['respond-asynchronously', 201, null],
      ['wait=1; respond-async', 201, null],
    ] as const) {
      const { status, headers } = await send('POST', create, sent, { prefer });
      expect([status, headers.get('preference-applied')]).toEqual(expected);
    }
  });

  test('A message in a channel starts a conversation, and is read back as it was sent', async () => {
    const { send, found, list, create, inbox, tag, otherTag, teammate } = await start();
    const addressees = {
      to: ['a@example.com', 'b@example.com'],
      cc: ['c@example.com'],
      bcc: ['d@example.com'],
    };
    const content = {
      subject: 'Ihr Päckchen 📦',
      body: '<b>On</b> its way.',
      text: 'On its way.',
      of_ours: [1],
    };
    const sent = { ...addressees, ...content, sender_name: 'Larkspur', metadata: { order: { id: 7 } } };
    const ids = { author_id: teammate.id, tag_ids: [tag], options: { tag_ids: [otherTag, tag] } };
    const forged = { id: 'mine', message_uid: 'mine', conversation_id: 'mine', type: 'mine', author: 'mine' };
    const more = {
      is_inbound: true,
      is_draft: false,
      seen_at: 1,
      created_at: 1,
      recipients: [],
      delivery: null,
    };
    const { body } = await send<Message>('POST', create, { ...sent, ...ids, ...forged, ...more });
    expect(JSON.stringify(body)).not.toMatch(/"mine"|delivery/);
    const roles = body.recipients.map(({ handle, role }) => `${role} ${handle}`);
    const others = ['to a@example.com', 'to b@example.com', 'cc c@example.com', 'bcc d@example.com'];
    expect(roles).toEqual(['from Shop chat', ...others]);
    const author = { id: teammate.id, name: teammate.name };
    const own = { type: 'custom', is_inbound: false, is_draft: true, blurb: content.text };
    expect(body).toMatchObject({ ...sent, ...own, author, is_seen: false, seen_at: null, created_at: NOW });
    const { message, conversation } = await found(body.id);
    expect(message).toEqual(body);
    const last_message = { excerpt: content.text, is_inbound: false, created_at: NOW };
    const recipient = { handle: 'a@example.com', role: 'to' };
    const given = { subject: content.subject, inbox: { id: inbox }, tags: [{ id: tag }, { id: otherTag }] };
    expect(conversation).toMatchObject({ ...given, status: 'unassigned', recipient, last_message });
    expect((await list('/conversations?limit=100')).at(-1)).toEqual(conversation);
  });

  test('Text and body are made of each other, long ones too; options.archive archives', async () => {
    const { send, found, create, sent } = await start();
    const post = async (content: object) =>
      (await send<Message>('POST', create, { to: sent.to, ...content, options: { archive: true } })).body;
    expect((await post({ body: '<p>one</p><p>two</p>' })).text).toBe('one two');
    const message = await post({ text: '1 < 2 & so\non' });
    expect(message.body).toBe('1 &lt; 2 &amp; so<br>on');
    expect((await found(message.id)).conversation.status).toBe('archived');
    const startedAt = performance.now();
    expect((await post({ body: `${'<'.repeat(900_000)}b>x` })).text).toMatch(/< x$/);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  test('A reply goes to the contact of the conversation, unless it names others', async () => {
    const { read, send, messagesOf, pages, conversation, otherChannel: channel_id, reply } = await start();
    const { subject, recipient, _links } = conversation;
    const before = await messagesOf(conversation.id);
    const { body } = await send<Message>('POST', reply, { body: 'Thank you.' });
    const recipients = [{ role: 'from' }, { handle: recipient.handle, role: 'to' }];
    expect(body).toMatchObject({ is_inbound: false, author: null, subject, recipients });
    const last_message = { excerpt: 'Thank you.', is_inbound: false, created_at: NOW };
    expect(await read(_links.self)).toMatchObject({ last_message, updated_at: NOW });
    const sent = { to: ['bob@example.com'], cc: ['eve@example.com'], subject: 'Another', text: 'hello' };
    const { body: other } = await send<Message>('POST', reply, { ...sent, channel_id });
    expect(other).toMatchObject({ ...sent, type: 'application' });
    const handles = other.recipients.map(({ handle }) => handle);
    expect(handles).toEqual(['Parcel tracker', 'bob@example.com', 'eve@example.com']);
    expect(await pages(`${reply}?limit=3`)).toEqual([before, [body, other]]);
  });
});

describe('Resources (our choice)', () => {
  test('A generated conversation has messages that fit it, the same at every reading', async () => {
    const { read, messagesOf, conversations } = await start();
    for (const { id, recipient, last_message, created_at } of conversations.slice(0, 5)) {
      const messages = await messagesOf(id);
      const { excerpt: text, ...last } = last_message;
      const recipients = [{ handle: recipient.handle, role: 'from' }, { role: 'to' }];
      const first = { is_inbound: true, author: null, recipients, created_at };
      expect(messages).toMatchObject([first, {}, { text, ...last }]);
      for (const message of messages) expect(await read(message._links.self)).toEqual(message);
    }
  });

  test('A message has two names, id and message_uid, and keeps when it was first seen', async () => {
    const { read, send, service, messagesOf, conversation } = await start();
    const [message, other] = await messagesOf(conversation.id);
    expect(message).toMatchObject({ is_seen: false, seen_at: null });
    const seen = await send<Message>('POST', `/messages/${message?.id}/seen`);
    expect(seen.body).toEqual({ ...message, is_seen: true, seen_at: NOW });
    await service.advance(10_000);
    await send('POST', `/messages/${message?.message_uid}/seen`, {});
    expect(message?.message_uid).not.toBe(message?.id);
    expect(await read(`/messages/${message?.message_uid}`)).toEqual(seen.body);
    expect(await read(`/messages/${other?.id}`)).toEqual(other);
  });
});
