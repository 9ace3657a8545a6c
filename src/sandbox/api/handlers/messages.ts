import type { messagesRoutes } from '../../../contract/api/messages.ts';
import { authorOf, type Message } from '../../data/messages.ts';
import { json } from '../../http/answer.ts';
import { actingTeammate } from '../acting-teammate.ts';
import { listNamed } from '../list.ts';
import { addMessage } from '../messaging/add-message.ts';
import { applicableTags } from '../messaging/applicable-tags.ts';
import { authorNamed } from '../messaging/author-named.ts';
import { taggedWith } from '../messaging/conversation-changes.ts';
import { addressees, channelHandle, contentOf, deliveryTo } from '../messaging/message-content.ts';
import { startConversation } from '../messaging/start-conversation.ts';
import {
  type ApiContext,
  type ApiRequest,
  type Handlers,
  named,
  Ready,
  reach,
  seconds,
  show,
} from '../request.ts';
import { accepted, outsideMessagesHandlers } from './outside-messages.ts';

/** The message with this id or `message_uid`, if its conversation is in reach. */
function messageOf(request: ApiContext & { params: { message_id: string } }): Message {
  const { tables, params, company } = request;
  const message = reach(request, tables.messages, company.correspondence.messageId(params.message_id));
  reach(request, tables.conversations, message.conversation_id);
  return message;
}

type Sending = ApiRequest<'createMessage'> | ApiRequest<'replyToConversation'>;

/** The author that is named, or the teammate for whom the token acts. */
function authorOfSent(request: Sending) {
  const acting = actingTeammate(request);
  return authorNamed(request, request.body.author_id) ?? (acting === undefined ? null : authorOf(acting));
}

function tagIdsOf({ body }: Sending): string[] {
  return [...(body.tag_ids ?? []), ...(body.options?.tag_ids ?? [])];
}

/** The draft that will be sent, or with `Prefer: respond-async` (RFC 7240) its `message_uid` (Endpoints). */
function draftAnswer(request: ApiContext, draft: Message): object {
  const preferences = [request.call.headers.prefer ?? []].flat().join(',').toLowerCase().split(',');
  const isAsync = preferences.some((one) => one.split(';', 1)[0]?.trim() === 'respond-async');
  return isAsync
    ? new Ready(json(202, accepted(draft), { 'preference-applied': 'respond-async' }))
    : show(request, request.tables.messages, draft);
}

function createMessage(request: ApiRequest<'createMessage'>) {
  const { tables, params, body, now } = request;
  const channel = reach(request, tables.channels, params.channel_id);
  const inbox = reach(request, tables.inboxes, channel.inbox_id);
  const author = authorOfSent(request);
  const tags = applicableTags(request, tagIdsOf(request), [inbox]);
  const recipients = addressees(body);
  const content = contentOf(body);
  const conversation = startConversation(request, {
    inbox,
    handle: body.to[0] ?? '',
    role: 'to',
    subject: content.subject,
    status: body.options?.archive === true ? 'archived' : 'unassigned',
    tags,
    at: seconds(now),
  });
  const draft = addMessage(request, conversation, {
    ...content,
    type: channel.type,
    is_inbound: false,
    delivery: deliveryTo(recipients, now),
    author,
    recipients: [{ handle: channelHandle(channel), role: 'from' }, ...recipients],
    seen_at: null,
    created_at: seconds(now),
  });
  return draftAnswer(request, draft);
}

function replyToConversation(request: ApiRequest<'replyToConversation'>) {
  const { tables, params, body, now } = request;
  const conversation = reach(request, tables.conversations, params.conversation_id);
  const inbox = reach(request, tables.inboxes, conversation.inbox.id);
  const channel =
    body.channel_id === undefined
      ? tables.channels.all().find(({ inbox_id }) => inbox_id === inbox.id)
      : named(request, tables.channels, body.channel_id);
  const from = channel === undefined ? inbox : named(request, tables.inboxes, channel.inbox_id);
  const author = authorOfSent(request);
  const tags = applicableTags(request, tagIdsOf(request), [inbox, from]);
  const recipients = addressees({ ...body, to: body.to ?? [conversation.recipient.handle] });
  const handle = channel === undefined ? inbox.name : channelHandle(channel);
  const draft = addMessage(request, taggedWith(conversation, tags), {
    ...contentOf({ ...body, subject: body.subject ?? conversation.subject }),
    type: channel?.type ?? 'email',
    is_inbound: false,
    delivery: deliveryTo(recipients, now),
    author,
    recipients: [{ handle, role: 'from' }, ...recipients],
    seen_at: null,
    created_at: seconds(now),
  });
  return draftAnswer(request, draft);
}

export const messagesHandlers: Handlers<keyof typeof messagesRoutes> = {
  ...outsideMessagesHandlers,
  getMessage: (request) => show(request, request.tables.messages, messageOf(request)),
  markMessageSeen: (request) => {
    const { messages } = request.tables;
    const message = messageOf(request);
    const seen_at = message.seen_at ?? seconds(request.now);
    return show(request, messages, messages.replace({ ...message, seen_at }));
  },
  listConversationMessages: (request) => {
    const { tables, params, company } = request;
    const { id } = reach(request, tables.conversations, params.conversation_id);
    return listNamed(request, tables.messages, company.correspondence.messagesOf(id));
  },
  createMessage,
  replyToConversation,
};
