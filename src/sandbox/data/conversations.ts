import type { Document, Kind, Owner } from './collection.ts';
import { contactIdentity } from './contacts.ts';
import { Random, seedOf } from './random.ts';
import { EXCERPTS, SUBJECTS } from './words.ts';

const KIND = 2;
const FIRST_CREATED_S = Date.UTC(2024, 0, 8) / 1000;
const CREATED_SPAN_S = 365 * 86_400;
const STATUSES = ['unassigned', 'assigned', 'assigned', 'archived', 'archived', 'archived'] as const;

interface Named {
  readonly id: string;
  readonly name: string;
}

/** A conversation (the fields are our choice: the specification shows none). */
export type Conversation = Document & {
  readonly subject: string;
  readonly status: string;
  readonly assignee: (Named & { readonly email: string }) | null;
  readonly recipient: {
    readonly contact_id: string | null;
    readonly name: string;
    readonly handle: string;
    readonly role: string;
  };
  readonly inbox: Named;
  readonly tags: readonly (Named & { readonly is_private: boolean })[];
  readonly links: readonly { readonly id: string }[];
  readonly custom_fields: Readonly<Record<string, unknown>>;
  readonly last_message: {
    readonly excerpt: string;
    readonly is_inbound: boolean;
    readonly created_at: number;
  };
  /** There once a teammate was to be reminded of it; moments in seconds since 1970. */
  readonly reminders?: readonly { readonly teammate_id: string; readonly scheduled_at: number }[];
  readonly is_private: boolean;
  readonly created_at: number;
  readonly updated_at: number;
};

/** What conversations refer to: shared things only, as OAuth tokens do not reach private ones (Authentication, 9). */
export interface ConversationParties {
  /** How many contacts the company was made with, and their ids. */
  contacts: { count: number; idAt(index: number): string };
  teammates: readonly { id: string; name: string; email: string }[];
  inboxes: readonly { id: string; name: string }[];
  tags: readonly { id: string; name: string }[];
}

function recipient(owner: Owner, contacts: ConversationParties['contacts'], index: number, random: Random) {
  const chosen = contacts.count > 0 ? random.int(contacts.count) : index;
  const { name, handle } = contactIdentity(owner.seed, chosen);
  return { contact_id: contacts.count > 0 ? contacts.idAt(chosen) : null, name, handle, role: 'from' };
}

function conversation(owner: Owner, parties: ConversationParties, index: number, id: string): Conversation {
  const random = new Random(seedOf(owner.seed, KIND, index));
  const createdAt = FIRST_CREATED_S + random.int(CREATED_SPAN_S);
  const status = random.pick(STATUSES);
  const assignee = status === 'assigned' ? random.pick(parties.teammates) : null;
  const updatedAt = createdAt + random.int(30 * 86_400_000) / 1000;
  return {
    id,
    subject: random.pick(SUBJECTS).replace('#', String(10_000 + index)),
    status,
    assignee: assignee && { id: assignee.id, name: assignee.name, email: assignee.email },
    recipient: recipient(owner, parties.contacts, index, random),
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

function present({ recipient: from, ...conversation }: Conversation, baseUrl: string) {
  const { contact_id: contact, ...shown } = from;
  const related = { contact: contact === null ? null : `${baseUrl}/contacts/${contact}` };
  return {
    _links: { self: `${baseUrl}/conversations/${conversation.id}` },
    ...conversation,
    recipient: { _links: { related }, ...shown },
  };
}

/** The conversations of a company. */
export function conversationKind(owner: Owner, parties: ConversationParties): Kind<Conversation> {
  return {
    prefix: 'cnv',
    shared: true,
    build: (index, id) => conversation(owner, parties, index, id),
    present,
  };
}
