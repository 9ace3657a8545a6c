import { authorOf, type Delivery, type Message, type Recipient } from '../data/messages.ts';
import { json } from '../http/answer.ts';
import { actingTeammate } from './caller.ts';
import { listNamed } from './list.ts';
import {
  addMessage,
  addressees,
  applicableTags,
  authorNamed,
  channelHandle,
  contentOf,
  startConversation,
  taggedWith,
} from './messaging.ts';
import { accepted } from './outside-messages.ts';
import { type ApiContext, type ApiRequest, type Handlers, named, Ready, reach, show } from './request.ts';

type Sending = ApiRequest<'createMessage'> | ApiRequest<'replyToConversation'>;

/** How long a message that is to be sent stays a draft, in milliseconds of the service's clock. */
const SENDING_MS = 1_000;
/** The domain that no one can have (RFC 2606). */
const UNREACHABLE = /@(?:[^@]*\.)?invalid\.?$/i;

/** The message with this id or `message_uid`, if its conversation is in reach. */
function messageOf(request: ApiContext & { params: { message_id: string } }): Message {
  const { tables, params, company } = request;
  const message = reach(request, tables.messages, company.correspondence.messageId(params.message_id));
  reach(request, tables.conversations, message.conversation_id);
  return message;
}

/** The author that is named, or the teammate for whom the token acts. */
function authorOfSent(request: Sending): Message['author'] {
  const acting = actingTeammate(request);
  return authorNamed(request, request.body.author_id) ?? (acting === undefined ? null : authorOf(acting));
}

function tagIdsOf({ body }: Sending): string[] {
  return [...(body.tag_ids ?? []), ...(body.options?.tag_ids ?? [])];
}

/** What a message is until it is sent. That goes wrong if one of its recipients cannot be reached. */
function draftTo(request: ApiContext, from: string, recipients: Recipient[]) {
  const fails = recipients.some(({ handle }) => UNREACHABLE.test(handle));
  const delivery: Delivery = { at: request.now + SENDING_MS, error: fails ? 'recipient_unreachable' : null };
  return {
    is_inbound: false,
    delivery,
    recipients: [{ handle: from, role: 'from' as const }, ...recipients],
    seen_at: null,
    created_at: request.at,
  };
}

/** The draft that will be sent, or with `Prefer: respond-async` (RFC 7240) its `message_uid` (Endpoints). */
function draftAnswer(request: ApiContext, draft: Message): object {
  const preferences = [request.call.headers.prefer ?? []].flat().join(',').toLowerCase().split(',');
  const isAsync = preferences.some((one) => one.split(';', 1)[0]?.trim() === 'respond-async');
  return isAsync
    ? new Ready(json(202, accepted(draft), { 'preference-applied': 'respond-async' }))
    : show(request, request.tables.messages, draft);
}

/** Handlers of the routes by which the company reads and sends messages. */
export const messageHandlers = {
  getMessage: (request) => show(request, request.tables.messages, messageOf(request)),

  markMessageSeen: (request) => {
    const { messages } = request.tables;
    const message = messageOf(request);
    return show(request, messages, messages.replace({ ...message, seen_at: message.seen_at ?? request.at }));
  },

  listConversationMessages: (request) => {
    const { tables, params, company } = request;
    const { id } = reach(request, tables.conversations, params.conversation_id);
    return listNamed(request, tables.messages, company.correspondence.messagesOf(id));
  },

  createMessage: (request) => {
    const { tables, params, body, at } = request;
    const channel = reach(request, tables.channels, params.channel_id);
    const inbox = reach(request, tables.inboxes, channel.inbox_id);
    const author = authorOfSent(request);
    const tags = applicableTags(request, tagIdsOf(request), [inbox]);
    const content = contentOf(body);
    const conversation = startConversation(request, {
      inbox,
      handle: body.to[0] ?? '',
      role: 'to',
      subject: content.subject,
      status: body.options?.archive === true ? 'archived' : 'unassigned',
      tags,
      at,
    });
    const draft = addMessage(request, conversation, {
      ...content,
      type: channel.type,
      author,
      ...draftTo(request, channelHandle(channel), addressees(body)),
    });
    return draftAnswer(request, draft);
  },

  replyToConversation: (request) => {
    const { tables, params, body } = request;
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
      author,
      ...draftTo(request, handle, recipients),
    });
    return draftAnswer(request, draft);
  },
} satisfies Partial<Handlers>;
