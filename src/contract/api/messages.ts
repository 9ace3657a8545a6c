import { z } from 'zod';
import { acceptedMessage, id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** A message (Resources, "Message"): a draft until it has been sent, and one that carries `error_type` if that failed. */
export const message = z.looseObject({
  _links: links,
  id,
  message_uid: id,
  conversation_id: id,
  type: z.string(),
  is_inbound: z.boolean(),
  is_draft: z.boolean(),
  error_type: z.string().nullable(),
  author: z.looseObject({ id, name: z.string() }).nullable(),
  recipients: z.array(z.looseObject({ handle: z.string(), role: z.string() })),
  subject: z.string().nullable(),
  blurb: z.string(),
  body: z.string(),
  text: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  is_seen: z.boolean(),
  seen_at: timestamp.nullable(),
  created_at: timestamp,
});

const handle = z.string().trim().min(1);
const handles = z.array(handle);
const reference = z.union([z.string().min(1), z.number()]).optional();

const content = {
  subject: z.string().nullable().optional(),
  body: z.string().optional(),
  text: z.string().optional(),
};
const sender = z.looseObject({ handle, name: z.string().optional() });
const addressees = { cc: handles.optional(), bcc: handles.optional() };

/** The references by which another system knows a conversation and a message. */
const metadata = z.looseObject({
  thread_ref: reference,
  external_id: reference,
  external_conversation_id: reference,
  is_inbound: z.boolean().optional(),
});

function hasContent({ body, text }: { body?: string | undefined; text?: string | undefined }): boolean {
  return `${body ?? ''}${text ?? ''}`.trim() !== '';
}
const NO_CONTENT = { path: ['body'], error: 'body or text is needed' };

const draft = z.looseObject({
  ...content,
  ...addressees,
  author_id: id.optional(),
  sender_name: z.string().optional(),
  tag_ids: z.array(id).optional(),
  options: z.looseObject({ tag_ids: z.array(id).optional(), archive: z.boolean().optional() }).optional(),
  /** Kept as it was sent. */
  metadata: z.record(z.string(), z.unknown()).optional(),
});

/** A message that starts a conversation. */
const newMessage = draft.extend({ to: handles.min(1) }).refine(hasContent, NO_CONTENT);

/** A reply: to the contact of the conversation, unless the body names others. */
const newReply = draft
  .extend({ to: handles.min(1).optional(), channel_id: id.optional() })
  .refine(hasContent, NO_CONTENT);

/** A message that came in by a channel. */
const newIncomingMessage = z
  .looseObject({ ...content, sender, metadata: metadata.optional() })
  .refine(hasContent, NO_CONTENT);

/** A message that another system has sent. */
const newOutboundMessage = z
  .looseObject({
    ...content,
    ...addressees,
    to: handles.min(1),
    author_id: id.optional(),
    metadata: metadata.optional(),
  })
  .refine(hasContent, NO_CONTENT);

const fromElsewhere = z.looseObject({
  ...content,
  ...addressees,
  sender,
  to: handles.optional(),
  author_id: id.optional(),
  is_inbound: z.boolean().optional(),
  metadata: metadata.optional(),
});

/** A message as it is in the other system. It is inbound, unless `is_inbound` says otherwise. */
const externalMessage = fromElsewhere.refine(hasContent, NO_CONTENT);

/** A past message. It is inbound, unless `is_inbound` says otherwise. */
const newImportedMessage = fromElsewhere
  .extend({
    type: z.string().min(1).optional(),
    external_id: reference,
    tag_ids: z.array(id).optional(),
    created_at: timestamp.optional(),
  })
  .refine(hasContent, NO_CONTENT);

export const messagesRoutes = defineRoutes({
  getMessage: {
    method: 'GET',
    path: '/messages/:message_id',
    summary: 'Fetches one message, by its id or its message_uid',
    source: 'choice',
    answer: message,
  },
  markMessageSeen: {
    method: 'POST',
    path: '/messages/:message_id/seen',
    summary: 'Says that a message was seen',
    source: 'specified',
    answer: message,
    guard: { guard: 'message-seen', by: [':message_id'] },
  },
  listConversationMessages: {
    method: 'GET',
    path: '/conversations/:conversation_id/messages',
    summary: 'Lists the messages of a conversation, in the order in which they were added',
    source: 'choice',
    list: true,
    answer: message,
  },
  createMessage: {
    method: 'POST',
    path: '/channels/:channel_id/messages',
    summary: 'Starts a conversation with a message that is sent by a channel',
    source: 'specified',
    body: newMessage,
    status: 201,
    answer: message,
    async: true,
    guard: { guard: 'resource', by: [':channel_id', 'recipients'] },
  },
  replyToConversation: {
    method: 'POST',
    path: '/conversations/:conversation_id/messages',
    summary: 'Sends a message in a conversation',
    source: 'specified',
    body: newReply,
    status: 201,
    answer: message,
    async: true,
    guard: { guard: 'resource', by: [':conversation_id'] },
  },
  receiveIncomingMessage: {
    method: 'POST',
    path: '/channels/:channel_id/incoming_messages',
    summary: 'Takes in a message that came by a custom channel',
    source: 'specified',
    body: newIncomingMessage,
    status: 202,
    answer: acceptedMessage,
    guard: { guard: 'resource', by: [':channel_id', 'conversation reference'] },
  },
  receiveInboundMessage: {
    method: 'POST',
    path: '/channels/:channel_id/inbound_messages',
    summary: 'Takes in a message that came by an application’s channel',
    source: 'specified',
    body: newIncomingMessage,
    status: 202,
    answer: acceptedMessage,
    guard: { guard: 'resource', by: [':channel_id', 'external conversation'] },
  },
  recordOutboundMessage: {
    method: 'POST',
    path: '/channels/:channel_id/outbound_message',
    summary: 'Takes in a message that was sent by an application’s channel',
    source: 'specified',
    body: newOutboundMessage,
    status: 202,
    answer: acceptedMessage,
    guard: { guard: 'resource', by: [':channel_id', 'external conversation'] },
  },
  putExternalMessage: {
    method: 'PUT',
    path: '/channels/:channel_id/conversations/:conv_ext_id/messages/:message_ext_id',
    summary: 'Takes in a message under its ids in the other system, or puts another content in its place',
    source: 'specified',
    body: externalMessage,
    status: 202,
    answer: acceptedMessage,
    guard: { guard: 'resource', by: [':channel_id', ':conv_ext_id'] },
  },
  importMessage: {
    method: 'POST',
    path: '/inboxes/:inbox_id/imported_messages',
    summary: 'Takes in a message of the past',
    source: 'specified',
    body: newImportedMessage,
    status: 202,
    answer: acceptedMessage,
    guard: { guard: 'resource', by: [':inbox_id', 'recipients'] },
  },
});
