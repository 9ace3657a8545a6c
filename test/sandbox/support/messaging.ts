import { expect } from 'vitest';
import type { AnswerOf } from '../../../src/contract/api/api.ts';
import { startOpen } from './routes.ts';
import { at } from './test-sandbox.ts';

export type Message = AnswerOf<'getMessage'> & { _links: { related: { conversation: string } } };

export type Conversation = AnswerOf<'getConversation'> & {
  recipient: { _links: { related: { contact: string } }; name: string };
  last_message: { excerpt: string; is_inbound: boolean; created_at: number };
};

/** A contact who writes. */
export const ann = { handle: 'Ann-from-chat', name: 'Ann Archer' };

export function idsOf(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}

/** A company that nothing limits, with what tests of conversations and messages need of it. */
export async function startMessaging() {
  const parts = await startOpen();
  const { company, send, read, list } = parts;
  const [channel = '', otherChannel] = company.channels;
  const [inbox = '', otherInbox = '', privateInbox = ''] = company.inboxes;
  const [tag = '', otherTag = '', , , privateTag = ''] = company.tags;
  const conversations = await list<Conversation>('/conversations');
  /** The message with this id or `message_uid`, and its conversation. */
  const found = async (id: string) => {
    const message = await read<Message>(`/messages/${id}`);
    return { message, conversation: await read<Conversation>(message._links.related.conversation) };
  };
  return {
    ...parts,
    ...{ channel, otherChannel, inbox, otherInbox, privateInbox, tag, otherTag, privateTag },
    conversations,
    conversation: at(
      conversations.filter((one) => one.inbox.id === inbox && one.status !== 'archived'),
      0,
    ),
    teammate: at(company.teammates, 0),
    found,
    messagesOf: (id: string) => list<Message>(`/conversations/${id}/messages`),
    /** Sends a message that must be accepted, and answers what became of it. */
    take: async (method: string, path: string, message: unknown) => {
      const { status, body } = await send<{ message_uid: string }>(method, path, message);
      expect([status, body]).toEqual([202, { status: 'accepted', message_uid: expect.any(String) }]);
      return found(body.message_uid);
    },
    addChannel: async (inboxId: string, type = 'custom') =>
      (await send('POST', `/inboxes/${inboxId}/channels`, { type })).body.id,
    incoming: `/channels/${channel}/incoming_messages`,
    inbound: `/channels/${channel}/inbound_messages`,
    outbound: `/channels/${channel}/outbound_message`,
    imported: `/inboxes/${inbox}/imported_messages`,
    external: (thread: string, id: string) =>
      `/channels/${channel}/conversations/${encodeURIComponent(thread)}/messages/${encodeURIComponent(id)}`,
  };
}
