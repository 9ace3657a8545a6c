import type { Conversation } from './conversations.ts';
import { IdSeries, type Owner } from './ids.ts';
import type { Document, Kind, Stored } from './kinds.ts';
import { Random, seedOf } from './random.ts';
import { EXCERPTS } from './words.ts';

const KIND = 4;
/** Every generated conversation has as many generated messages. */
const MESSAGES_EACH = 3;
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
export type Message = MessageContent &
  Document &
  Pick<Stored<'getMessage'>, 'message_uid' | 'conversation_id'>;

/** Who sent or gets a message. */
export type Recipient = Message['recipients'][number];

/** A message's beginning, for lists. */
export function blurbOf(text: string): string {
  return text.length <= BLURB_LENGTH ? text : `${[...text].slice(0, BLURB_LENGTH - 1).join('')}…`;
}

/** What a message shows of the teammate who wrote it. */
export function authorOf({ id, name }: { id: string; name: string }): { id: string; name: string } {
  return { id, name };
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
  return new IdSeries('mui', owner);
}

/** The first is the contact's, the last is what the conversation shows as its last, and others lie between them. */
function generated(
  owner: Owner,
  index: number,
  conversationAt: (index: number) => Conversation,
  teammates: readonly { id: string; name: string }[],
) {
  const random = new Random(seedOf(owner.seed, KIND, index));
  const turn = index % MESSAGES_EACH;
  const {
    id,
    recipient,
    last_message: last,
    created_at,
    subject,
  } = conversationAt((index - turn) / MESSAGES_EACH);
  const isLast = turn === MESSAGES_EACH - 1;
  const is_inbound = isLast ? last?.is_inbound === true : turn === 0;
  const text = (isLast ? last?.excerpt : undefined) ?? random.pick(EXCERPTS);
  const contact = { handle: recipient?.handle ?? '', name: recipient?.name };
  const own = { handle: OWN_ADDRESS };
  const endedAt = last?.created_at ?? created_at;
  return {
    conversation_id: id,
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
    body: `<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`,
    text,
    metadata: {},
    seen_at: null,
    created_at: isLast ? endedAt : created_at + Math.floor(((endedAt - created_at) * turn) / MESSAGES_EACH),
  };
}

/** The messages of a company: a few for each generated conversation, which `conversationAt` tells as it was at start. */
export function messageKind(
  owner: Owner,
  conversationAt: (index: number) => Conversation,
  teammates: readonly { id: string; name: string }[],
): Kind<Message> {
  const uids = messageUids(owner);
  return {
    prefix: 'msg',
    build: (index, id) => ({
      ...generated(owner, index, conversationAt, teammates),
      id,
      message_uid: uids.id(index),
    }),
    present: ({ delivery, seen_at, ...message }, baseUrl, { now }) => ({
      _links: {
        self: `${baseUrl}/messages/${message.id}`,
        related: { conversation: `${baseUrl}/conversations/${message.conversation_id}` },
      },
      ...message,
      is_draft: delivery !== null && !(now >= delivery.at && delivery.error === null),
      error_type: delivery !== null && now >= delivery.at ? delivery.error : null,
      is_seen: seen_at !== null,
      seen_at,
    }),
  };
}
