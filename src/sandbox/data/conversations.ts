import { Collection, type Document, type Owner } from './collection.ts';
import { contactIdentity } from './contacts.ts';
import { Random, seedOf } from './random.ts';
import { EXCERPTS, SUBJECTS } from './words.ts';

const KIND = 2;
const FIRST_CREATED_S = Date.UTC(2024, 0, 8) / 1000;
const CREATED_SPAN_S = 365 * 86_400;
const STATUSES = ['unassigned', 'assigned', 'assigned', 'archived', 'archived', 'archived'] as const;

/** What conversations refer to: shared things only, as OAuth tokens do not reach private ones (Authentication, 9). */
export interface ConversationParties {
  contacts: Collection;
  teammates: readonly { id: string; name: string; email: string }[];
  inboxes: readonly { id: string; name: string }[];
  tags: readonly { id: string; name: string }[];
}

function recipient(owner: Owner, contacts: Collection, index: number, random: Random, baseUrl: string) {
  const chosen = contacts.count > 0 ? random.int(contacts.count) : index;
  const { name, handle } = contactIdentity(owner.seed, chosen);
  const contact = contacts.count > 0 ? `${baseUrl}/contacts/${contacts.idAt(chosen)}` : null;
  return { _links: { related: { contact } }, name, handle, role: 'from' };
}

function conversation(
  owner: Owner,
  parties: ConversationParties,
  index: number,
  id: string,
  baseUrl: string,
): Document {
  const random = new Random(seedOf(owner.seed, KIND, index));
  const createdAt = FIRST_CREATED_S + random.int(CREATED_SPAN_S);
  const status = random.pick(STATUSES);
  const assignee = status === 'assigned' ? random.pick(parties.teammates) : null;
  const updatedAt = createdAt + random.int(30 * 86_400_000) / 1000;
  return {
    _links: { self: `${baseUrl}/conversations/${id}` },
    id,
    subject: random.pick(SUBJECTS).replace('#', String(10_000 + index)),
    status,
    assignee: assignee && { id: assignee.id, name: assignee.name, email: assignee.email },
    recipient: recipient(owner, parties.contacts, index, random, baseUrl),
    inbox: random.pick(parties.inboxes),
    tags: random.chance(55) ? [{ ...random.pick(parties.tags), is_private: false }] : [],
    links: [],
    custom_fields: random.chance(30) ? { order_number: 10_000 + index, priority: random.int(4) + 1 } : {},
    last_message: { excerpt: random.pick(EXCERPTS), is_inbound: random.chance(60), created_at: updatedAt },
    is_private: false,
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

/** A company's conversations (the fields are our choice: the specification shows none). */
export function conversations(owner: Owner, count: number, parties: ConversationParties): Collection {
  return new Collection('cnv', owner, count, (index, id, baseUrl) =>
    conversation(owner, parties, index, id, baseUrl),
  );
}
