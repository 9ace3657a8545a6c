import { describe, expect, test } from 'vitest';
import { ann, type Message, startMessaging } from './support/messaging.ts';
import { START_MS } from './support/test-sandbox.ts';

const NOW = START_MS / 1000;
const DRAFT = [true, null];
const SENT = [false, null];
const FAILED = [true, 'recipient_unreachable'];

/** Both routes that create messages, and a body that they take. */
async function start() {
  const parts = await startMessaging();
  const { service, token, send, read, channel, conversation } = parts;
  const create = `/channels/${channel}/messages`;
  const reply = `/conversations/${conversation.id}/messages`;
  const sent = { sender: ann, to: ['ann@example.com'], body: 'Hello' };
  return {
    ...parts,
    ...{ sent, create, reply, both: [create, reply] },
    post: async (path: string, message: object) => (await send<Message>('POST', path, message)).body,
    preferring: (path: string, prefer: string) =>
      service.call<{ message_uid: string }>('POST', path, token, sent, { prefer }),
    /** The states of a new draft: as it is answered, and after so many ms each. */
    statesOf: async (path: string, addressees: object, ...steps: number[]) => {
      let { body: message } = await send<Message>('POST', path, { ...sent, ...addressees });
      const states = [[message.is_draft, message.error_type]];
      for (const ms of steps) {
        service.advance(ms);
        message = await read<Message>(`/messages/${message.id}`);
        states.push([message.is_draft, message.error_type]);
      }
      return states;
    },
  };
}

describe('States: message drafts', () => {
  test('A draft, no other message, has is_draft true until sent; error_type if it fails', async () => {
    const { both, statesOf, take, incoming } = await start();
    for (const path of both) {
      expect(await statesOf(path, {}, 60_000)).toEqual([DRAFT, SENT]);
      expect(await statesOf(path, { to: ['ann@nowhere.invalid'] }, 60_000)).toEqual([DRAFT, FAILED]);
    }
    const received = await take('POST', incoming, { sender: { handle: 'x@nowhere.invalid' }, text: 'x' });
    expect(received.message).toMatchObject({ is_draft: false, error_type: null });
  });
});

describe('States: message drafts (our choice)', () => {
  test('A draft is sent after a second, or fails if an address of it ends in .invalid', async () => {
    const { create, statesOf } = await start();
    for (const [addressees, state] of [
      [{ to: ['ann@invalid.example'] }, SENT],
      [{ to: ['ann@example.com', 'nobody@INVALID'] }, FAILED],
      [{ cc: ['nobody@a.b.invalid'] }, FAILED],
      [{ bcc: ['nobody@a.b.invalid'] }, FAILED],
    ] as const)
      expect(await statesOf(create, addressees, 999, 1)).toEqual([DRAFT, DRAFT, state]);
  });
});

describe('Endpoints: creation of messages', () => {
  test('The answer is the draft that will be sent, or asynchronously its message_uid', async () => {
    const { send, preferring, found, both, sent } = await start();
    for (const path of both) {
      const { status, body } = await send<Message>('POST', path, sent);
      expect([status, body]).toEqual([201, (await found(body.id)).message]);
      expect(body).toMatchObject({ ...sent, is_draft: true, is_inbound: false });
      const accepted = await preferring(path, 'respond-async');
      expect([accepted.status, Object.keys(accepted.body)]).toEqual([202, ['status', 'message_uid']]);
      const { message } = await found(accepted.body.message_uid);
      expect(message).toMatchObject({ ...sent, message_uid: accepted.body.message_uid, is_draft: true });
    }
  });

  test('Tags must fit the inboxes of a message; otherwise it is refused and not created', async () => {
    const { send, post, expectStatus, counts, both, reply, sent, tag, privateTag, ...its } = await start();
    const channel_id = await its.addChannel(its.privateInbox, 'email');
    const create = `/channels/${channel_id}/messages`;
    const before = counts();
    for (const path of [...both, its.imported]) {
      const { body } = await send('POST', path, { ...sent, tag_ids: [tag, privateTag] });
      const message = expect.stringMatching(`tag_ids: ${privateTag} is private`);
      expect(body).toMatchObject({ _error: { status: 422, message } });
    }
    await expectStatus(422, [
      ['POST', create, { ...sent, tag_ids: [tag] }],
      ['POST', create, { ...sent, options: { tag_ids: [tag] } }],
      ['POST', reply, { ...sent, channel_id, tag_ids: [privateTag] }],
    ]);
    expect(counts()).toEqual(before);
    await expectStatus(201, [['POST', reply, { ...sent, channel_id }]]);
    const { conversation } = await its.found((await post(create, { ...sent, tag_ids: [privateTag] })).id);
    expect(conversation).toMatchObject({ is_private: true, tags: [{ id: privateTag }] });
  });
});

describe('Endpoints: creation of messages (our choice)', () => {
  test('Prefer: respond-async asks for the asynchronous form (RFC 7240)', async () => {
    const { preferring, create } = await start();
    for (const [prefer, ...expected] of [
      ['wait=5, Respond-Async; x=1', 202, 'respond-async'],
      ['respond-asynchronously', 201, null],
      ['wait=1; respond-async', 201, null],
    ] as const) {
      const { status, headers } = await preferring(create, prefer);
      expect([status, headers.get('preference-applied')]).toEqual(expected);
    }
  });

  test('A message in a channel starts a conversation, and is read back as it was sent', async () => {
    const { post, found, list, create, inbox, tag, otherTag, teammate } = await start();
    const addressees = {
      to: ['a@example.com', 'b@example.com'],
      cc: ['c@example.com'],
      bcc: ['d@example.com'],
    };
    const content = { subject: 'Ihr Päckchen 📦', body: '<b>On</b> its way.', text: 'On its way.' };
    const own = { of_ours: [1], sender_name: 'Larkspur', metadata: { order: { id: 7 } } };
    const sent = { ...addressees, ...content, ...own };
    const ids = { author_id: teammate.id, tag_ids: [tag], options: { tag_ids: [otherTag, tag] } };
    const forged = { is_inbound: true, is_draft: false, seen_at: 1, recipients: [], author: 'mine' };
    const message = await post(create, { ...sent, ...ids, ...forged });
    const roles = message.recipients.map(({ handle, role }) => `${role} ${handle}`);
    const others = ['to a@example.com', 'to b@example.com', 'cc c@example.com', 'bcc d@example.com'];
    expect(roles).toEqual(['from Shop chat', ...others]);
    const author = { id: teammate.id, name: teammate.name };
    const made = { type: 'custom', is_inbound: false, is_draft: true, blurb: content.text };
    expect(message).toMatchObject({
      ...sent,
      ...made,
      author,
      is_seen: false,
      seen_at: null,
      created_at: NOW,
    });
    const { conversation, ...read } = await found(message.id);
    expect(read).toEqual({ message });
    const last_message = { excerpt: content.text, is_inbound: false, created_at: NOW };
    const recipient = { handle: 'a@example.com', role: 'to' };
    const given = { subject: content.subject, inbox: { id: inbox }, tags: [{ id: tag }, { id: otherTag }] };
    expect(conversation).toMatchObject({ ...given, status: 'unassigned', recipient, last_message });
    expect((await list('/conversations?limit=1'))[0]).toEqual(conversation);
  });

  test('A reply goes to the contact of the conversation, unless it names others', async () => {
    const { read, post, messagesOf, conversation, otherChannel: channel_id, reply } = await start();
    const { subject, recipient, _links } = conversation;
    const before = await messagesOf(conversation.id);
    const message = await post(reply, { body: 'Thank you.' });
    const recipients = [{ role: 'from' }, { handle: recipient.handle, role: 'to' }];
    expect(message).toMatchObject({ is_inbound: false, author: null, subject, recipients });
    const last_message = { excerpt: 'Thank you.', is_inbound: false, created_at: NOW };
    expect(await read(_links.self)).toMatchObject({ last_message, updated_at: NOW });
    const sent = { to: ['bob@example.com'], cc: ['eve@example.com'], subject: 'Another', text: 'hello' };
    const other = await post(reply, { ...sent, channel_id });
    expect(other).toMatchObject({ ...sent, type: 'application' });
    const handles = other.recipients.map(({ handle }) => handle);
    expect(handles).toEqual(['Parcel tracker', 'bob@example.com', 'eve@example.com']);
    expect(await messagesOf(conversation.id)).toEqual([...before, message, other]);
  });
});

describe('Resources (our choice)', () => {
  test('A message has two names, id and message_uid, and keeps when it was first seen', async () => {
    const { read, send, service, messagesOf, conversation } = await start();
    const [message, other] = await messagesOf(conversation.id);
    expect(message).toMatchObject({ is_inbound: true, is_draft: false, is_seen: false, seen_at: null });
    const seen = await send<Message>('POST', `/messages/${message?.id}/seen`);
    expect(seen.body).toEqual({ ...message, is_seen: true, seen_at: NOW });
    service.advance(10_000);
    await send('POST', `/messages/${message?.message_uid}/seen`, {});
    expect(message?.message_uid).not.toBe(message?.id);
    expect(await read(`/messages/${message?.message_uid}`)).toEqual(seen.body);
    expect(await read(`/messages/${other?.id}`)).toEqual(other);
  });
});
