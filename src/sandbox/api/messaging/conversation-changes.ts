import type { Conversation } from '../../data/conversations.ts';
import type { Inbox } from '../../data/inboxes.ts';
import type { Message } from '../../data/messages.ts';
import type { Tag } from '../../data/tags.ts';
import type { Teammate } from '../../data/teammates.ts';
import { Problem } from '../../http/answer.ts';

/** What a client may ask the status of a conversation to be; see `conversationChanges` in the contract. */
type StatusAsked = 'open' | 'assigned' | 'unassigned' | 'archived' | 'deleted' | 'spam';

function openStatus({ assignee }: Pick<Conversation, 'assignee'>): string {
  return assignee === null ? 'unassigned' : 'assigned';
}

function isOpen({ status }: Conversation): boolean {
  return status === 'assigned' || status === 'unassigned';
}

/** The conversation, open again if it was not. */
export function opened(conversation: Conversation): Conversation {
  return { ...conversation, status: openStatus(conversation) };
}

/** The conversation with another assignee, or none; one that is archived stays so. */
export function assignedTo(conversation: Conversation, teammate: Teammate | null): Conversation {
  const assignee = teammate && { id: teammate.id, name: teammate.name, email: teammate.email };
  const status = isOpen(conversation) ? openStatus({ assignee }) : conversation.status;
  return { ...conversation, assignee, status };
}

/** The conversation in another status. Throws a {@link Problem} (422) for `assigned` without an assignee. */
export function inStatus(conversation: Conversation, status: StatusAsked): Conversation {
  if (status === 'unassigned') return { ...conversation, assignee: null, status };
  if (status === 'assigned' && conversation.assignee === null) {
    throw new Problem(422, 'status: assigned needs an assignee_id.');
  }
  return status === 'open' ? opened(conversation) : { ...conversation, status };
}

/** The conversation in another inbox: as private as that is. */
export function movedTo(conversation: Conversation, { id, name, is_private }: Inbox): Conversation {
  return { ...conversation, inbox: { id, name }, is_private };
}

/** The conversation with some more tags. */
export function taggedWith(conversation: Conversation, tags: readonly Tag[]): Conversation {
  const others = conversation.tags.filter(({ id }) => !tags.some((tag) => tag.id === id));
  return { ...conversation, tags: [...others, ...tags] };
}

/** The conversation after a message, which is its last unless it is older than that. */
export function afterMessage(conversation: Conversation, message: Message, now: number): Conversation {
  const { blurb: excerpt, is_inbound, created_at } = message;
  return {
    ...conversation,
    last_message:
      created_at < conversation.last_message.created_at
        ? conversation.last_message
        : { excerpt, is_inbound, created_at },
    updated_at: now,
  };
}
