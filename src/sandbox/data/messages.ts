import type { Document, Kind, Owner, View } from './collection.ts';
import type { Conversation } from './conversations.ts';
import { IdSeries } from './ids.ts';
import { Random, seedOf } from './random.ts';
import { EXCERPTS } from './words.ts';

const KIND = 4;
/** Every generated conversation has as many generated messages. */
const MESSAGES_EACH = 3;
/** What an inbox' own address looks like in what was generated. */
const OWN_ADDRESS = 'hello@team.example';
const BLURB_LENGTH = 120;

/** Who sent or gets a message. */
export interface Recipient {
  readonly handle: string;
  readonly role: 'from' | 'to' | 'cc' | 'bcc';
  readonly name?: string;
}

/** The way of a message that is sent: a draft until then. */
export interface Delivery {
  /** When it is sent, in ms since 1970. */
  readonly at: number;
  /** What goes wrong then, if anything: it stays a draft. */
  readonly error: string | null;
}

/** A message, but for its ids and its conversation; members that the contract does not name are kept too. */
export type MessageContent = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly is_inbound: boolean;
  /** Null for one that was received, or that has been sent already. */
  readonly delivery: Delivery | null;
  readonly author: { readonly id: string; readonly name: string } | null;
  readonly recipients: readonly Recipient[];
  readonly subject: string | null;
  readonly blurb: string;
  readonly body: string;
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly seen_at: number | null;
  readonly created_at: number;
};

/** A message (Resources, "Message"; the other fields are our choice). */
export type Message = Document &
  MessageContent & { readonly conversation_id: string; readonly message_uid: string };

/** A message's beginning, for lists. */
export function blurbOf(text: string): string {
  return text.length <= BLURB_LENGTH ? text : `${[...text].slice(0, BLURB_LENGTH - 1).join('')}…`;
}

/** What generated messages are made of. */
export interface MessageParties {
  /** The conversation with this index as it was at start. */
  conversationAt(index: number): Conversation;
  teammates: readonly { id: string; name: string }[];
}

/** How many messages so many generated conversations have. */
export function generatedMessages(conversations: number): number {
  return conversations * MESSAGES_EACH;
}

/** The indexes of the messages of a generated conversation, oldest first. */
export function messageIndexes(conversationIndex: number): number[] {
  return Array.from({ length: MESSAGES_EACH }, (_, turn) => conversationIndex * MESSAGES_EACH + turn);
}

/** The `message_uid`s of a company: each leads to the index of its message. */
export function messageUids(owner: Owner): IdSeries {
  return new IdSeries('mui', owner.code, owner.seed);
}

/** The first is the contact's, the last is what the conversation shows as its last, and others lie between them. */
function generated(owner: Owner, parties: MessageParties, index: number) {
  const random = new Random(seedOf(owner.seed, KIND, index));
  const turn = index % MESSAGES_EACH;
  const conversation = parties.conversationAt((index - turn) / MESSAGES_EACH);
  const { recipient, last_message: last, created_at: from } = conversation;
  const isLast = turn === MESSAGES_EACH - 1;
  const isInbound = isLast ? last.is_inbound : turn === 0;
  const text = isLast ? last.excerpt : random.pick(EXCERPTS);
  const contact = { handle: recipient.handle, name: recipient.name };
  const own = { handle: OWN_ADDRESS };
  return {
    conversation_id: conversation.id,
    type: 'email',
    is_inbound: isInbound,
    delivery: null,
    author: isInbound ? null : authorOf(random.pick(parties.teammates)),
    recipients: [
      { ...(isInbound ? contact : own), role: 'from' as const },
      { ...(isInbound ? own : contact), role: 'to' as const },
    ],
    subject: conversation.subject,
    blurb: blurbOf(text),
    body: `<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`,
    text,
    metadata: {},
    seen_at: null,
    created_at: isLast
      ? last.created_at
      : from + Math.floor(((last.created_at - from) * turn) / MESSAGES_EACH),
  };
}

/** What a message shows of the teammate who wrote it. */
export function authorOf({ id, name }: { id: string; name: string }): { id: string; name: string } {
  return { id, name };
}

function present({ delivery, seen_at, ...message }: Message, baseUrl: string, { now }: View) {
  const isSent = delivery === null || (now >= delivery.at && delivery.error === null);
  return {
    _links: {
      self: `${baseUrl}/messages/${message.id}`,
      related: { conversation: `${baseUrl}/conversations/${message.conversation_id}` },
    },
    ...message,
    is_draft: !isSent,
    error_type: delivery !== null && now >= delivery.at ? delivery.error : null,
    is_seen: seen_at !== null,
    seen_at,
  };
}

/** The messages of a company: a few for each generated conversation. */
export function messageKind(owner: Owner, parties: MessageParties): Kind<Message> {
  const uids = messageUids(owner);
  return {
    prefix: 'msg',
    build: (index, id) => ({ ...generated(owner, parties, index), id, message_uid: uids.id(index) }),
    present,
  };
}
