import type { Document, Kind, Owner } from './collection.ts';
import {
  type ConversationLots,
  type ConversationParties,
  draftConversation,
  encodeParties,
  numbered,
} from './conversation-draft.ts';
import { conversationText } from './conversation-text.ts';
import { writtenName } from './names.ts';

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

function conversation(lots: ConversationLots, index: number, id: string): Conversation {
  const draft = draftConversation(lots, index);
  const { contact, assignee, tag, fields, createdAt } = draft;
  const updatedAt = createdAt + draft.changedAfterMs / 1000;
  return {
    id,
    subject: numbered(draft.subject.value, draft.number),
    status: draft.status.value,
    assignee: assignee === undefined ? null : { ...assignee.value },
    recipient: {
      contact_id: contact.contactId,
      name: writtenName(contact.person),
      handle: `${contact.local}@${contact.domain}`,
      role: 'from',
    },
    inbox: draft.inbox.value,
    tags: tag === undefined ? [] : [{ ...tag.value }],
    links: [],
    custom_fields: fields ?? {},
    last_message: { excerpt: draft.excerpt.value, is_inbound: draft.isInbound, created_at: updatedAt },
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
  const lots = encodeParties(owner, parties);
  return {
    prefix: 'cnv',
    build: (index, id) => conversation(lots, index, id),
    present,
    text: (index, id, base) => conversationText(lots, index, id, base),
  };
}
