import type { Conversation } from '../../data/conversations.ts';
import type { Inbox } from '../../data/inboxes.ts';
import type { Tag } from '../../data/tags.ts';
import type { ApiContext } from '../request.ts';
import { contactOf } from './contact-of.ts';

/** How a conversation begins. */
export interface Beginning {
  inbox: Inbox;
  /** The contact's handle, and the name that it goes by if the contact is not known yet. */
  handle: string;
  name?: string | undefined;
  /** Who writes first: the contact (`from`), or the company (`to`). */
  role: 'from' | 'to';
  subject: string | null;
  status: 'unassigned' | 'archived';
  tags: readonly Tag[];
  /** When its first message was made, in seconds since 1970. */
  at: number;
}

/** Starts a conversation; its first message is still to be added. */
export function startConversation(request: ApiContext, beginning: Beginning): Conversation {
  const { inbox, handle, name, role, subject, status, tags, at } = beginning;
  const contact = contactOf(request, handle, name);
  return request.tables.conversations.add((id) => ({
    id,
    subject: subject ?? '',
    status,
    assignee: null,
    recipient: { contact_id: contact.id, name: contact.name, handle, role },
    inbox: { id: inbox.id, name: inbox.name },
    tags: [...tags],
    links: [],
    custom_fields: {},
    last_message: { excerpt: '', is_inbound: role === 'from', created_at: at },
    is_private: inbox.is_private,
    created_at: at,
    updated_at: at,
  }));
}
