import type { Conversation } from './conversations.ts';
import { Random, seedOf } from './random.ts';
import type { Document, Kind, Stored } from './record.ts';
import { EXCERPTS } from './words.ts';

const KIND = 4;
/** Every generated conversation has as many generated messages. */
export const MESSAGES_EACH = 3;
/** What an inbox' own address looks like in what was generated. */
const OWN_ADDRESS = 'hello@team.example';
const BLURB_LENGTH = 120;

/** The way of a message that is sent: a draft until then. */
export interface Delivery {
  /** When it is sent, in ms since 1970. */
  readonly at: number;
  /** What goes wrong then, if anything: it stays a draft. */
  readonly error: string | null;
}

/** A message, but for its ids and its conversation. */
export type MessageContent = Stored<
  'getMessage',
  'id' | 'message_uid' | 'conversation_id' | 'is_draft' | 'error_type' | 'is_seen'
> & {
  /** Null for one that was received, or that has been sent already. */
  readonly delivery: Delivery | null;
};

/** A message (Resources, "Message"; the other fields are our choice). */
export type Message = MessageContent & Document & Pick<Stored<'getMessage'>, 'conversation_id'>;

/** Who sent or gets a message. */
export type Recipient = Message['recipients'][number];

/** A message's beginning, for lists. */
function blurbOf(text: string): string {
  return text.length <= BLURB_LENGTH ? text : `${[...text].slice(0, BLURB_LENGTH - 1).join('')}…`;
}

function textOf(html: string): string {
  const text = html.replace(/<[^<>]*>/g, ' ');
  return text.replace(/\s+/g, ' ').trim();
}

function htmlOf(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('\n', '<br>');
}

/** What a message says: the service makes `body` from `text`, or `text` from `body`. */
export function wordsOf({
  subject = null,
  metadata = {},
  ...given
}: { [Name in 'subject' | 'body' | 'text' | 'metadata']?: MessageContent[Name] | undefined }) {
  const text = given.text ?? textOf(given.body ?? '');
  return { subject, body: given.body ?? htmlOf(text), text, blurb: blurbOf(text), metadata };
}

/** What a message shows of the teammate who wrote it. */
export function authorOf({ id, name }: { id: string; name: string }): { id: string; name: string } {
  return { id, name };
}

/** The `message_uid` of the message with this id. */
export function messageUid(id: string): string {
  return id.replace(/^msg_/, 'mui_');
}

/** The id of the message with this id or `message_uid`. */
export function messageId(idOrUid: string): string {
  return idOrUid.replace(/^mui_/, 'msg_');
}

/**
 * Generates a message. A conversation's first is its contact's, the last is the one that the conversation shows, and the
 * others lie between them.
 *
 * @param conversationAt the generated conversation with an index, as it was at start
 */
export function generateMessage(
  seed: number,
  conversationAt: (index: number) => Conversation,
  teammates: readonly { id: string; name: string }[],
  index: number,
  id: string,
): Message {
  const random = new Random(seedOf(seed, KIND, index));
  const turn = index % MESSAGES_EACH;
  const conversation = conversationAt((index - turn) / MESSAGES_EACH);
  const { recipient, subject, created_at } = conversation;
  const last = conversation.last_message ?? { excerpt: '', is_inbound: true, created_at };
  const isLast = turn === MESSAGES_EACH - 1;
  const is_inbound = isLast ? last.is_inbound : turn === 0;
  const text = isLast ? last.excerpt : random.pick(EXCERPTS);
  const contact = { handle: recipient?.handle ?? '', name: recipient?.name };
  const own = { handle: OWN_ADDRESS };
  const elapsed = Math.floor(((last.created_at - created_at) * turn) / MESSAGES_EACH);
  return {
    conversation_id: conversation.id,
    type: 'email',
    is_inbound,
    delivery: null,
    author: is_inbound ? null : authorOf(random.pick(teammates)),
    recipients: [
      { ...(is_inbound ? contact : own), role: 'from' },
      { ...(is_inbound ? own : contact), role: 'to' },
    ],
    subject,
    blurb: blurbOf(text),
    body: `<p>${htmlOf(text)}</p>`,
    text,
    metadata: {},
    seen_at: null,
    created_at: isLast ? last.created_at : created_at + elapsed,
    id,
  };
}

export const messageKind: Kind<Message> = {
  prefix: 'msg',
  present: ({ delivery, seen_at, ...message }, baseUrl, { now }) => ({
    _links: {
      self: `${baseUrl}/messages/${message.id}`,
      related: { conversation: `${baseUrl}/conversations/${message.conversation_id}` },
    },
    ...message,
    message_uid: messageUid(message.id),
    is_draft: delivery !== null && !(now >= delivery.at && delivery.error === null),
    error_type: delivery !== null && now >= delivery.at ? delivery.error : null,
    is_seen: seen_at !== null,
    seen_at,
  }),
};
