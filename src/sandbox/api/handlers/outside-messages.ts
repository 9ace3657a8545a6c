import { isFedFromOutside } from '../../data/channels.ts';
import type { Message } from '../../data/messages.ts';
import { Problem } from '../../http/answer.ts';
import { applicableTags } from '../messaging/applicable-tags.ts';
import { authorNamed } from '../messaging/author-named.ts';
import { channelHandle } from '../messaging/message-content.ts';
import { outsideMessage } from '../messaging/outside-message.ts';
import {
  alreadyTakenIn,
  knownConversation,
  type OutsideMessage,
  type Reference,
  replaceTakenIn,
  takeIn,
} from '../messaging/take-in.ts';
import { type ApiContext, type ApiRequest, type Handlers, reach, seconds } from '../request.ts';

type ExternalId = string | number | undefined;

/** What the asynchronous routes answer of a message (Resources, "Message"). */
export function accepted({ message_uid }: Message) {
  return { status: 'accepted', message_uid };
}

/** The channel and its inbox. Throws a {@link Problem} (422) for a channel that fetches its messages itself. */
function outsideChannel(request: ApiContext & { params: { channel_id: string } }) {
  const { channels, inboxes } = request.tables;
  const channel = reach(request, channels, request.params.channel_id);
  if (!isFedFromOutside(channel)) {
    throw new Problem(422, `${channel.id} is of the type ${channel.type}, which takes no such messages.`);
  }
  const inbox = reach(request, inboxes, channel.inbox_id);
  return { inbox, type: channel.type, ownHandle: channelHandle(channel) };
}

/** The message's own reference: what it is called within its conversation. */
function messageWithin(thread: Reference, externalId: ExternalId): Reference | undefined {
  return externalId === undefined ? undefined : ['external message', ...thread, String(externalId)];
}

/** A message is taken in once, however often it is brought. */
function takeInOnce(request: ApiContext, message: OutsideMessage) {
  return accepted(alreadyTakenIn(request, message) ?? takeIn(request, message));
}

function externalThread(channelId: string, externalId: ExternalId, contact: string): Reference {
  return ['external conversation', channelId, String(externalId ?? contact.toLowerCase())];
}

function receive(
  request: ApiRequest<'receiveIncomingMessage'> | ApiRequest<'receiveInboundMessage'>,
  thread: Reference,
) {
  const { body, now } = request;
  const message = outsideMessage({
    ...outsideChannel(request),
    body,
    isInbound: true,
    author: null,
    thread,
    reference: messageWithin(thread, body.metadata?.external_id),
    recipient: undefined,
    tags: [],
    at: seconds(now),
  });
  return takeInOnce(request, message);
}

function recordOutboundMessage(request: ApiRequest<'recordOutboundMessage'>) {
  const { params, body, now } = request;
  const { external_conversation_id: externalId, external_id } = body.metadata ?? {};
  const thread = externalThread(params.channel_id, externalId, body.to[0] ?? '');
  const message = outsideMessage({
    ...outsideChannel(request),
    body,
    isInbound: false,
    author: authorNamed(request, body.author_id),
    thread,
    reference: messageWithin(thread, external_id),
    recipient: undefined,
    tags: [],
    at: seconds(now),
  });
  return takeInOnce(request, message);
}

function putExternalMessage(request: ApiRequest<'putExternalMessage'>) {
  const { params, body, now } = request;
  const { channel_id, conv_ext_id: external_conversation_id, message_ext_id: external_id } = params;
  const thread = externalThread(channel_id, external_conversation_id, '');
  const message = outsideMessage({
    ...outsideChannel(request),
    body: { ...body, metadata: { ...body.metadata, external_id, external_conversation_id } },
    isInbound: body.is_inbound ?? body.metadata?.is_inbound ?? true,
    author: authorNamed(request, body.author_id),
    thread,
    reference: messageWithin(thread, external_id),
    recipient: knownConversation(request, thread)?.recipient.handle,
    tags: [],
    at: seconds(now),
  });
  return accepted(replaceTakenIn(request, message) ?? takeIn(request, message));
}

function importMessage(request: ApiRequest<'importMessage'>) {
  const { params, body, now, tables } = request;
  const inbox = reach(request, tables.inboxes, params.inbox_id);
  const at = body.created_at ?? seconds(now);
  if (at > seconds(now)) throw new Problem(422, `created_at: ${at} is in the future.`);
  const threadRef = body.metadata?.thread_ref;
  const thread: Reference | undefined =
    threadRef === undefined ? undefined : ['imported thread', inbox.id, String(threadRef)];
  const known = knownConversation(request, thread);
  // It may have been moved meanwhile, and tags have to fit where it is now as well.
  const current = tables.inboxes.find(known?.inbox.id ?? inbox.id) ?? inbox;
  const externalId = body.external_id ?? body.metadata?.external_id;
  const message = outsideMessage({
    inbox,
    type: body.type ?? 'email',
    ownHandle: inbox.name,
    body,
    isInbound: body.is_inbound ?? body.metadata?.is_inbound ?? true,
    author: authorNamed(request, body.author_id),
    thread,
    reference: externalId === undefined ? undefined : ['imported message', inbox.id, String(externalId)],
    recipient: known?.recipient.handle,
    tags: applicableTags(request, body.tag_ids ?? [], [inbox, current]),
    at,
    isOld: true,
  });
  return takeInOnce(request, message);
}

/** Handlers of the routes by which messages of other systems come in: each takes effect at once. */
export const outsideMessagesHandlers: Handlers<
  | 'receiveIncomingMessage'
  | 'receiveInboundMessage'
  | 'recordOutboundMessage'
  | 'putExternalMessage'
  | 'importMessage'
> = {
  receiveIncomingMessage: (request) => {
    const { metadata, sender } = request.body;
    const reference = String(metadata?.thread_ref ?? sender.handle.toLowerCase());
    return receive(request, ['conversation reference', request.params.channel_id, reference]);
  },
  receiveInboundMessage: (request) => {
    const { metadata, sender } = request.body;
    const { channel_id } = request.params;
    return receive(request, externalThread(channel_id, metadata?.external_conversation_id, sender.handle));
  },
  recordOutboundMessage,
  putExternalMessage,
  importMessage,
};
