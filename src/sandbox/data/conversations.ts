import { datesOf } from './contacts.ts';
import { Random, seedOf } from './random.ts';
import type { Stored, Tag } from './record.ts';
import { EXCERPTS, SUBJECTS } from './words.ts';

const KIND = 2;
const FIRST_CHANGED_S = Date.UTC(2024, 1, 7) / 1000;
const CHANGED_SPAN_S = 365 * 86_400;
const AGE_MAX_MS = 30 * 86_400_000;
const FIRST_NUMBER = 10_000;
const STATUSES = ['unassigned', 'assigned', 'assigned', 'archived', 'archived', 'archived'] as const;

/** A conversation (the fields are our choice); `recipient.contact_id` is shown as a link. */
export type Conversation = Stored<'getConversation', 'tags'> & {
  readonly tags: readonly { readonly [name: string]: unknown; readonly id: string; readonly name: string }[];
};

/** What conversations refer to: shared things only, as OAuth tokens do not reach private ones (Authentication, 9). */
export interface ConversationParties {
  /** Whom the company was made with; without contacts, conversations name people who are none. */
  contacts: number;
  contactAt(index: number): { id: string; name: string; handles: readonly { handle: string }[] };
  teammates: readonly { id: string; name: string; email: string }[];
  inboxes: readonly { id: string; name: string }[];
  tags: readonly Tag[];
}

function drawRecipient(random: Random, { contacts, contactAt }: ConversationParties, index: number) {
  const { id, name, handles } = contactAt(contacts === 0 ? index : random.int(contacts));
  return { contact_id: contacts === 0 ? null : id, name, handle: handles[0]?.handle ?? '', role: 'from' };
}

/**
 * Generates a conversation. The order of the draws is what makes it the same in every version.
 *
 * @param count of generated conversations: each changed later than the one before it
 */
export function generateConversation(
  seed: number,
  parties: ConversationParties,
  index: number,
  id: string,
  count: number,
): Conversation {
  const random = new Random(seedOf(seed, KIND, index));
  const number = FIRST_NUMBER + index;
  const changedS =
    FIRST_CHANGED_S + (index * CHANGED_SPAN_S + random.int(CHANGED_SPAN_S)) / Math.max(1, count);
  const status = random.pick(STATUSES);
  const assignee = status === 'assigned' ? random.pick(parties.teammates) : null;
  const { created_at, updated_at } = datesOf(changedS, random.int(AGE_MAX_MS));
  const subject = random.pick(SUBJECTS).replace('#', String(number));
  const recipient = drawRecipient(random, parties, index);
  return {
    id,
    subject,
    status,
    assignee,
    inbox: random.pick(parties.inboxes),
    tags: random.chance(55) && parties.tags.length > 0 ? [random.pick(parties.tags)] : [],
    links: [],
    custom_fields: random.chance(30) ? { order_number: number, priority: random.int(4) + 1 } : {},
    last_message: { excerpt: random.pick(EXCERPTS), is_inbound: random.chance(60), created_at: updated_at },
    is_private: false,
    created_at,
    updated_at,
    recipient,
  };
}
