import { expect, test } from 'vitest';
import type { Conversation } from '../sandbox/support/messaging.ts';
import { ann, startOutside } from '../sandbox/support/outside.ts';
import { START_MS } from '../sandbox/support/test-sandbox.ts';

const NOW = START_MS / 1000;

test('an imported message keeps its moment, type and tags; those with the same thread_ref are one conversation', async () => {
  const { take, inbox, tag, teammate, messagesOf, read } = await startOutside();
  const path = `/inboxes/${inbox}/imported_messages`;
  const sent = {
    sender: { handle: 'ann@example.com', name: 'Ann' },
    to: ['shop@example.org'],
    cc: ['copy@example.org'],
    subject: 'Long ago',
    body: 'It was',
    external_id: 'old-1',
    created_at: NOW - 1_000.5,
    type: 'sms',
    metadata: { thread_ref: 'old' },
  };
  const { message, conversation } = await take('POST', path, { ...sent, tag_ids: [tag] });
  expect(message).toMatchObject({ ...sent, is_inbound: true, is_draft: false });
  expect(message.recipients).toEqual([
    { ...sent.sender, role: 'from' },
    { handle: 'shop@example.org', role: 'to' },
    { handle: 'copy@example.org', role: 'cc' },
  ]);
  expect(conversation).toMatchObject({
    status: 'archived',
    subject: 'Long ago',
    tags: [{ id: tag }],
    created_at: NOW - 1_000.5,
    updated_at: NOW,
  });
  const answer = await take('POST', path, {
    sender: { handle: 'shop@example.org' },
    to: ['ann@example.com'],
    body: 'Answer',
    is_inbound: false,
    author_id: teammate.id,
    created_at: NOW - 500,
    metadata: { thread_ref: 'old' },
  });
  const earlier = await take('POST', path, { ...sent, external_id: 'old-0', created_at: NOW - 2_000 });
  expect(answer.message).toMatchObject({ is_inbound: false, author: { id: teammate.id } });
  expect([answer.conversation.id, earlier.conversation.id]).toEqual([conversation.id, conversation.id]);
  expect(await read(`/conversations/${conversation.id}`)).toMatchObject({
    status: 'archived',
    last_message: { excerpt: 'Answer', is_inbound: false, created_at: NOW - 500 },
  });
  expect(await messagesOf(conversation.id)).toHaveLength(3);
  const again = await take('POST', path, { ...sent, body: 'again' });
  expect(again.message).toEqual(message);
  const alone = await take('POST', path, { sender: sent.sender, text: 'alone' });
  expect(alone.conversation.id).not.toBe(conversation.id);
  expect(alone.message).toMatchObject({ type: 'email', created_at: NOW });
  expect(alone.conversation.status).toBe('archived');
});

test('the tags of an imported message must fit where its conversation is now, too', async () => {
  const { take, send, read, statusOf, inbox, privateInbox, privateTag, tag } = await startOutside();
  const path = `/inboxes/${privateInbox}/imported_messages`;
  const sent = { sender: ann, text: 'x', metadata: { thread_ref: 't' } };
  const { conversation } = await take('POST', path, { ...sent, tag_ids: [privateTag] });
  expect(conversation).toMatchObject({ is_private: true, tags: [{ id: privateTag }] });
  const moved = `/conversations/${conversation.id}`;
  await send('PATCH', moved, { inbox_id: inbox, tag_ids: [] });
  expect(await statusOf('POST', path, { ...sent, tag_ids: [privateTag] })).toBe(422);
  expect(await statusOf('POST', path, { ...sent, tag_ids: [tag] })).toBe(422);
  expect((await take('POST', path, sent)).conversation.id).toBe(conversation.id);
  expect((await read<Conversation>(moved)).tags).toEqual([]);
});
