import type { CheckedBodyOf } from '../../contract/api/api.ts';
import { type Contact, indexInHandle } from '../data/contacts.ts';
import type { Conversation } from '../data/conversations.ts';
import { DEFAULTS } from '../data/literals.ts';
import {
  authorOf,
  type Message,
  type MessageContent,
  messageId,
  messageUid,
  type Recipient,
  wordsOf,
} from '../data/messages.ts';
import type { Channel, Inbox, Tag } from '../data/record.ts';
import { json, Problem } from '../http/answer.ts';
import { listNamed } from './list.ts';
import { type ApiContext, type ApiRequest, type Handlers, own, Ready } from './request.ts';

/** How long a message that is to be sent stays a draft, in milliseconds of the service's clock. */
const SENDING_MS = 1_000;
/** No one can own this domain (RFC 2606). */
const UNREACHABLE = /@(?:[^@]*\.)?invalid\.?$/i;

/** The members that bodies of message routes have in common. */
export type MessageBody = Pick<
  CheckedBodyOf<'replyToConversation'>,
  'subject' | 'body' | 'text' | 'to' | 'cc' | 'bcc' | 'metadata'
>;

/** The sender of an inbound message. */
export type Sender = CheckedBodyOf<'receiveIncomingMessage'>['sender'];

/**
 * The tags that a body names, if they can be applied given the inboxes (Endpoints, "Message-creation routes"): private
 * tags are for private inboxes, and a private inbox takes the tags of its own teammate alone.
 * Throws a {@link Problem}: 422 for one that cannot, or that there is not; 403 for one out of the token's reach.
 */
export function applicableTags(request: ApiContext, tagIds: readonly string[], inboxes: Inbox[]): Tag[] {
  return [...new Set(tagIds)].map((tagId) => {
    const tag = request.named('tags', tagId);
    for (const { id, is_private, teammate_id } of inboxes) {
      if (!is_private && tag.is_private) {
        throw new Problem(422, `tag_ids: ${tagId} is private, and the inbox ${id} is shared.`);
      }
      if (is_private && !(tag.is_private && tag.teammate_id === teammate_id)) {
        throw new Problem(422, `tag_ids: ${tagId} is not a tag of the teammate whose inbox ${id} is.`);
      }
    }
    return tag;
  });
}

/** The items that are not among others, by id. */
export function without<T extends { id: string }>(items: readonly T[], others: readonly { id: string }[]) {
  return items.filter(({ id }) => !others.some((other) => other.id === id));
}

/** The conversation with some more tags. */
export function taggedWith(conversation: Conversation, tags: readonly Tag[]): Conversation {
  return { ...conversation, tags: [...without(conversation.tags, tags), ...tags] };
}

/** The teammate that a body names as author. Throws a {@link Problem} (422) when there is none with that id. */
export function authorNamed(request: ApiContext, id: string | undefined): Message['author'] {
  return id === undefined ? null : authorOf(request.named('teammates', id));
}

/** The company's side of a channel's messages. */
export function channelHandle({ send_as, address, name }: Channel): string {
  return send_as ?? address ?? name;
}

/** The recipients that a body names. */
export function addressees({ to, cc, bcc }: MessageBody): Recipient[] {
  const all = Object.entries({ to, cc, bcc }) as ['to' | 'cc' | 'bcc', string[] | undefined][];
  return all.flatMap(([role, handles = []]) => handles.map((handle) => ({ handle, role })));
}

/** The content of a message. */
export function contentOf(body: MessageBody) {
  return { ...own(body), ...wordsOf(body) };
}

function sourceOf(handle: string): string {
  if (handle.includes('@')) return 'email';
  return /^\+?[\d ()-]+$/.test(handle) ? 'phone' : 'custom';
}

/** The contact with a handle (in any case); one that is not known yet is created. */
function contactOf({ tables, company, at }: ApiContext, handle: string, name = handle): Contact {
  const { contacts } = tables;
  const key = handle.toLowerCase();
  const index = indexInHandle(key);
  const generated = index === undefined ? undefined : contacts.idAt(index);
  const known = [company.correspondence.find('contact handle', key), generated]
    .map((id = '') => contacts.find(id))
    .find((contact) => contact?.handles.some((one) => one.handle.toLowerCase() === key));
  if (known !== undefined) return known;
  const contact = contacts.add((id) => ({
    ...DEFAULTS.contacts,
    id,
    name,
    handles: [{ handle, source: sourceOf(handle) }],
    created_at: at,
    updated_at: at,
  }));
  company.correspondence.note(contact.id, 'contact handle', key);
  return contact;
}

/** Starts a conversation with a contact; its first message, made `at` (seconds since 1970), is still to be added. */
export function startConversation(
  request: ApiContext,
  inbox: Inbox,
  { handle, name }: Sender,
  begun: Pick<Conversation, 'status' | 'tags'> & { subject: string | null; isInbound: boolean; at: number },
): Conversation {
  const { subject, status, tags, isInbound, at } = begun;
  const contact = contactOf(request, handle, name);
  return request.tables.conversations.add((id) => ({
    ...DEFAULTS.conversations,
    id,
    subject: subject ?? '',
    status,
    recipient: { contact_id: contact.id, name: contact.name, handle, role: isInbound ? 'from' : 'to' },
    inbox: { id: inbox.id, name: inbox.name },
    tags: [...tags],
    last_message: { excerpt: '', is_inbound: isInbound, created_at: at },
    is_private: inbox.is_private,
    created_at: at,
    updated_at: at,
  }));
}

/** Keeps a conversation after a message, which is its last unless it is older than that. */
export function noteLast({ tables, at }: ApiContext, conversation: Conversation, message: Message): void {
  const { blurb: excerpt, is_inbound, created_at } = message;
  const isOlder = created_at < (conversation.last_message?.created_at ?? 0);
  const last_message = isOlder ? conversation.last_message : { excerpt, is_inbound, created_at };
  tables.conversations.replace({ ...conversation, last_message, updated_at: at });
}

/** Adds a message to a conversation, and keeps the conversation as it is given and then is. */
export function addMessage(
  request: ApiContext,
  conversation: Conversation,
  content: MessageContent,
): Message {
  const { correspondence } = request.company;
  const { id: conversation_id } = conversation;
  const message = request.tables.messages.add((id) => ({ ...content, id, conversation_id }));
  correspondence.addMessage(conversation.id, message.id);
  noteLast(request, conversation, message);
  return message;
}

/** What the asynchronous routes answer of a message (Resources, "Message"). */
export function accepted({ id }: Message) {
  return { status: 'accepted', message_uid: messageUid(id) };
}

type Sending = ApiRequest<'createMessage'> | ApiRequest<'replyToConversation'>;

/** The message with this id or `message_uid`, if its conversation is in reach. */
function messageOf(request: ApiContext & { params: { message_id: string } }): Message {
  const message = request.reach('messages', messageId(request.params.message_id));
  request.reach('conversations', message.conversation_id);
  return message;
}

/** The author that is named, or the teammate for whom the token acts. */
function authorOfSent(request: Sending): Message['author'] {
  const { actingTeammate } = request;
  return authorNamed(request, request.body.author_id) ?? (actingTeammate ? authorOf(actingTeammate) : null);
}

function tagIdsOf({ body }: Sending): string[] {
  return [...(body.tag_ids ?? []), ...(body.options?.tag_ids ?? [])];
}

/** Who the conversation is with. Throws a `Problem` (422) when nobody is known. */
function recipientOf({ recipient }: Conversation): string {
  if (recipient === null) throw new Problem(422, 'to: is needed, because the conversation has no recipient.');
  return recipient.handle;
}

/**
 * Adds a message that is sent in a moment; it stays a draft if one of its recipients cannot be reached. Answers the
 * draft, or with `Prefer: respond-async` (RFC 7240) its `message_uid` (Endpoints).
 */
function send(
  request: Sending,
  conversation: Conversation,
  from: { handle: string; type: string; author: Message['author'] },
  content: ReturnType<typeof contentOf>,
  recipients: Recipient[],
): object {
  const { call, now, at } = request;
  const { handle, type, author } = from;
  const fails = recipients.some((one) => UNREACHABLE.test(one.handle));
  const draft = addMessage(request, conversation, {
    ...content,
    type,
    is_inbound: false,
    delivery: { at: now + SENDING_MS, error: fails ? 'recipient_unreachable' : null },
    author,
    recipients: [{ handle, role: 'from' }, ...recipients],
    seen_at: null,
    created_at: at,
  });
  const preferences = [call.headers.prefer ?? []].flat().join(',').toLowerCase().split(',');
  const isAsync = preferences.some((one) => one.split(';', 1)[0]?.trim() === 'respond-async');
  return isAsync
    ? new Ready(json(202, accepted(draft), { 'preference-applied': 'respond-async' }))
    : request.show('messages', draft);
}

/** Handlers of the routes by which the company reads and sends messages. */
export const messageHandlers = {
  getMessage: (request) => request.show('messages', messageOf(request)),

  markMessageSeen: (request) => {
    const message = messageOf(request);
    const { messages } = request.tables;
    const seen = messages.replace({ ...message, seen_at: message.seen_at ?? request.at });
    return request.show('messages', seen);
  },

  listConversationMessages: (request) => {
    const { id } = request.reach('conversations', request.params.conversation_id);
    return listNamed(request, 'messages', request.company.correspondence.messagesOf(id));
  },

  createMessage: (request) => {
    const { params, body, at } = request;
    const channel = request.reach('channels', params.channel_id);
    const inbox = request.reach('inboxes', channel.inbox_id);
    const author = authorOfSent(request);
    const tags = applicableTags(request, tagIdsOf(request), [inbox]);
    const content = contentOf(body);
    const status = body.options?.archive === true ? 'archived' : 'unassigned';
    const begun = { subject: content.subject, status, tags, isInbound: false, at };
    const conversation = startConversation(request, inbox, { handle: body.to[0] ?? '' }, begun);
    const from = { handle: channelHandle(channel), type: channel.type, author };
    return send(request, conversation, from, content, addressees(body));
  },

  replyToConversation: (request) => {
    const { tables, params, body } = request;
    const conversation = request.reach('conversations', params.conversation_id);
    const inbox = request.reach('inboxes', conversation.inbox.id);
    const channel =
      body.channel_id === undefined
        ? tables.channels.all().find(({ inbox_id }) => inbox_id === inbox.id)
        : request.named('channels', body.channel_id);
    const ownInbox = channel === undefined ? inbox : request.named('inboxes', channel.inbox_id);
    const author = authorOfSent(request);
    const tags = applicableTags(request, tagIdsOf(request), [inbox, ownInbox]);
    const recipients = addressees({ ...body, to: body.to ?? [recipientOf(conversation)] });
    const handle = channel === undefined ? inbox.name : channelHandle(channel);
    const content = contentOf({ ...body, subject: body.subject ?? conversation.subject });
    const from = { handle, type: channel?.type ?? 'email', author };
    return send(request, taggedWith(conversation, tags), from, content, recipients);
  },
} satisfies Partial<Handlers>;
