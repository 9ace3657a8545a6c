import type { Conversation } from '../data/conversations.ts';
import type { Message, MessageContent, Recipient } from '../data/messages.ts';
import type { Inbox } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import type { KnownBy } from '../state/correspondence.ts';
import { opened } from './conversation-handlers.ts';
import {
  accepted,
  addMessage,
  addressees,
  applicableTags,
  authorNamed,
  channelHandle,
  contentOf,
  type MessageBody,
  noteLast,
  type Sender,
  startConversation,
  taggedWith,
} from './message-handlers.ts';
import type { ApiContext, Handlers } from './request.ts';

/** What another system calls a conversation or a message. */
type Reference = readonly [KnownBy, ...string[]];
type ExternalId = string | number | undefined;

/** A message that another system brings. */
interface Told {
  inbox: Inbox;
  type: string;
  /** The company's end of the message. */
  ownHandle: string;
  body: MessageBody & { sender?: Sender | undefined };
  isInbound: boolean;
  authorId?: string | undefined;
  /** What its conversation is called there; undefined for one of its own. */
  thread: Reference | undefined;
  /** What the message is called there; undefined if it was not said. */
  reference: Reference | undefined;
  tagIds?: readonly string[] | undefined;
  /** When it was made, in seconds since 1970, if it is of the past: it opens no conversation. */
  madeAt?: number;
  /** Whether it takes the place of the one with the same reference; else a message is taken in once. */
  replaces?: true;
}

/** The id that a reference leads to; that record may be gone. */
function idOf({ company }: ApiContext, reference: Reference | undefined): string {
  return (reference && company.correspondence.find(...reference)) ?? '';
}

/** Who the conversation is with. Throws a {@link Problem} (422) when nothing tells. */
function contactIn({ body, isInbound }: Told, conversation: Conversation | undefined): Sender {
  if (isInbound && body.sender !== undefined) return body.sender;
  const handle = body.to?.[0] ?? conversation?.recipient?.handle;
  if (handle === undefined) throw new Problem(422, 'to: is needed for a message that starts a conversation.');
  return { handle };
}

/** From the sender, or else the company, to those that are named, or else the other side. */
function recipientsOf({ body, isInbound, ownHandle }: Told, contact: Sender): Recipient[] {
  const { handle, name } = body.sender ?? { handle: ownHandle };
  const from: Recipient = { handle, role: 'from', ...(name === undefined ? {} : { name }) };
  const to = addressees(body);
  return [from, ...(to.length > 0 ? to : addressees({ to: [isInbound ? ownHandle : contact.handle] }))];
}

/** Puts another content in the place of a message's. */
function replace(
  request: ApiContext,
  { id, conversation_id, created_at, seen_at }: Message,
  conversation: Conversation,
  content: MessageContent,
): Message {
  const { tables, company, at } = request;
  const kept = { id, conversation_id, created_at, seen_at };
  const message = tables.messages.replace({ ...content, ...kept });
  const isLast = company.correspondence.messagesOf(conversation_id).at(-1) === id;
  if (isLast) noteLast(request, conversation, message);
  else tables.conversations.replace({ ...conversation, updated_at: at });
  return message;
}

/** Takes a message in, with the conversation that it belongs to or begins; answers its `message_uid`. */
function takeIn(request: ApiContext, told: Told) {
  const { tables, company } = request;
  const { inbox, type, body, isInbound, thread, reference, madeAt } = told;
  const author = authorNamed(request, told.authorId);
  const at = madeAt ?? request.at;
  const before = tables.conversations.find(idOf(request, thread));
  // It may have been moved meanwhile, and tags have to fit where it is now as well.
  const current = tables.inboxes.find(before?.inbox.id ?? '') ?? inbox;
  const tags = applicableTags(request, told.tagIds ?? [], [inbox, current]);
  const contact = contactIn(told, before);
  const content = {
    ...contentOf(body),
    type,
    is_inbound: isInbound,
    delivery: null,
    author: isInbound ? null : author,
    recipients: recipientsOf(told, contact),
    seen_at: null,
    created_at: at,
  };
  const known = tables.messages.find(idOf(request, reference));
  const its = known && tables.conversations.find(known.conversation_id);
  if (known && its) return accepted(told.replaces ? replace(request, known, its, content) : known);
  const isNews = isInbound && madeAt === undefined;
  const status = madeAt === undefined ? 'unassigned' : 'archived';
  const begun = { subject: content.subject, status, tags, isInbound, at };
  const conversation =
    before === undefined
      ? startConversation(request, inbox, contact, begun)
      : taggedWith(isNews ? opened(before) : before, tags);
  if (thread !== undefined) company.correspondence.note(conversation.id, ...thread);
  const message = addMessage(request, conversation, content);
  if (reference !== undefined) company.correspondence.note(message.id, ...reference);
  return accepted(message);
}

/**
 * Takes a message in that another system brings to a channel, where `externalId` is its name within its conversation.
 * Throws a {@link Problem} (422) for a channel that fetches its messages itself.
 */
function takeFromOutside(
  request: ApiContext & { params: { channel_id: string } },
  thread: Reference,
  externalId: ExternalId,
  told: Pick<Told, 'body' | 'isInbound' | 'authorId' | 'replaces'>,
) {
  const channel = request.reach('channels', request.params.channel_id);
  const { type } = channel;
  if (type !== 'custom' && type !== 'application') {
    throw new Problem(422, `${channel.id} is of the type ${type}, which takes no such messages.`);
  }
  const inbox = request.reach('inboxes', channel.inbox_id);
  const reference: Reference | undefined =
    externalId === undefined ? undefined : ['external message', ...thread, String(externalId)];
  return takeIn(request, { inbox, type, ownHandle: channelHandle(channel), thread, reference, ...told });
}

/** Without a reference the conversation is the one with the contact. */
function externalThread(channelId: string, externalId: ExternalId, contact: string): Reference {
  return ['external conversation', channelId, String(externalId ?? contact.toLowerCase())];
}

/** Handlers of the routes by which messages of other systems come in: each takes effect at once. */
export const outsideMessageHandlers = {
  receiveIncomingMessage: (request) => {
    const { body, params } = request;
    const { thread_ref, external_id } = body.metadata ?? {};
    const reference = String(thread_ref ?? body.sender.handle.toLowerCase());
    const thread = ['conversation reference', params.channel_id, reference] as const;
    return takeFromOutside(request, thread, external_id, { body, isInbound: true });
  },

  receiveInboundMessage: (request) => {
    const { body, params } = request;
    const { external_conversation_id, external_id } = body.metadata ?? {};
    const thread = externalThread(params.channel_id, external_conversation_id, body.sender.handle);
    return takeFromOutside(request, thread, external_id, { body, isInbound: true });
  },

  recordOutboundMessage: (request) => {
    const { body, params } = request;
    const { external_conversation_id, external_id } = body.metadata ?? {};
    const thread = externalThread(params.channel_id, external_conversation_id, body.to[0] ?? '');
    const told = { body, isInbound: false, authorId: body.author_id };
    return takeFromOutside(request, thread, external_id, told);
  },

  putExternalMessage: (request) => {
    const { params, body } = request;
    const { channel_id, conv_ext_id: external_conversation_id, message_ext_id: external_id } = params;
    return takeFromOutside(request, externalThread(channel_id, external_conversation_id, ''), external_id, {
      body: { ...body, metadata: { ...body.metadata, external_id, external_conversation_id } },
      isInbound: body.is_inbound ?? body.metadata?.is_inbound ?? true,
      authorId: body.author_id,
      replaces: true,
    });
  },

  importMessage: (request) => {
    const { body, at } = request;
    const inbox = request.reach('inboxes', request.params.inbox_id);
    const { created_at: madeAt = at } = body;
    if (madeAt > at) throw new Problem(422, `created_at: ${madeAt} is in the future.`);
    const threadRef = body.metadata?.thread_ref;
    const externalId = body.external_id ?? body.metadata?.external_id;
    return takeIn(request, {
      inbox,
      type: body.type ?? 'email',
      ownHandle: inbox.name,
      body,
      isInbound: body.is_inbound ?? body.metadata?.is_inbound ?? true,
      authorId: body.author_id,
      thread: threadRef === undefined ? undefined : ['imported thread', inbox.id, String(threadRef)],
      reference: externalId === undefined ? undefined : ['imported message', inbox.id, String(externalId)],
      tagIds: body.tag_ids,
      madeAt,
    });
  },
} satisfies Partial<Handlers>;
