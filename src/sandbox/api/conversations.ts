import type { CheckedBodyOf } from '../../contract/api/api.ts';
import type { Conversation } from '../data/conversations.ts';
import type { Inbox, Teammate } from '../data/kinds.ts';
import { Problem } from '../http/answer.ts';
import { listPage } from './list.ts';
import { applicableTags, taggedWith, without } from './messages.ts';
import { type ApiContext, changed, type Handlers, named, own, reach } from './request.ts';

/** Members of a conversation that other routes, messages or the ids in a body make. */
const NOT_SENT =
  /^(status|assignee|assignee_id|inbox|inbox_id|tags|tag_ids|links|link_ids|recipient|last_message|reminders)$/;

type StatusAsked = NonNullable<CheckedBodyOf<'updateConversation'>['status']>;
type OfConversation = ApiContext & { params: { conversation_id: string } };

function conversationOf(request: OfConversation): Conversation {
  return reach(request, request.tables.conversations, request.params.conversation_id);
}

/** Keeps a changed conversation, and shows it. */
function keep(request: ApiContext, conversation: Conversation): object {
  return changed(request, request.tables.conversations, conversation);
}

function inboxOf(request: ApiContext, { inbox }: Conversation): Inbox {
  return named(request, request.tables.inboxes, inbox.id);
}

function assigneeNamed(request: ApiContext, id: string | null): Teammate | null {
  return id === null ? null : named(request, request.tables.teammates, id);
}

function openStatus({ assignee }: Pick<Conversation, 'assignee'>): string {
  return assignee === null ? 'unassigned' : 'assigned';
}

/** The conversation, open again if it was not. */
export function opened(conversation: Conversation): Conversation {
  return { ...conversation, status: openStatus(conversation) };
}

/** The conversation with another assignee, or none; one that is archived stays so. */
function assignedTo(conversation: Conversation, teammate: Teammate | null): Conversation {
  const assignee = teammate && { id: teammate.id, name: teammate.name, email: teammate.email };
  const isOpen = ['assigned', 'unassigned'].includes(conversation.status);
  return { ...conversation, assignee, status: isOpen ? openStatus({ assignee }) : conversation.status };
}

/** The conversation in another status. Throws a {@link Problem} (422) for `assigned` without an assignee. */
function inStatus(conversation: Conversation, status: StatusAsked): Conversation {
  if (status === 'unassigned') return { ...conversation, assignee: null, status };
  if (status === 'assigned' && conversation.assignee === null) {
    throw new Problem(422, 'status: assigned needs an assignee_id.');
  }
  return status === 'open' ? opened(conversation) : { ...conversation, status };
}

/** The words of a query, in lower case. Throws a {@link Problem} (400) when there is none. */
function wordsOf(query: string): string[] {
  const words = query.normalize('NFC').toLowerCase().split(/\s+/);
  const found = words.filter((word) => word !== '');
  if (found.length === 0) throw new Problem(400, 'The query has no words.');
  return found;
}

/** Whether all words, as whole words or parts of them, occur in the list's view of a conversation. */
function hasWords(conversation: Conversation, words: readonly string[]): boolean {
  const { subject, recipient, tags, last_message } = conversation;
  const names = tags.map(({ name }) => name);
  const texts = [subject, recipient?.name, recipient?.handle, last_message?.excerpt, ...names];
  const text = texts.join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Handlers of conversations that do more than read one or list all. */
export const conversationHandlers = {
  searchConversations: (request) => {
    const words = wordsOf(request.params.query);
    return listPage(request, request.tables.conversations, (conversation) => hasWords(conversation, words));
  },

  updateConversation: (request) => {
    const { tables, body } = request;
    const sent = Object.entries(own(body)).filter(([name]) => !NOT_SENT.test(name));
    let conversation: Conversation = { ...conversationOf(request), ...Object.fromEntries(sent) };
    if (body.inbox_id !== undefined) {
      const { id, name, is_private } = named(request, tables.inboxes, body.inbox_id);
      conversation = { ...conversation, inbox: { id, name }, is_private };
    }
    if (body.tag_ids !== undefined) {
      const tags = applicableTags(request, body.tag_ids, [inboxOf(request, conversation)]);
      conversation = { ...conversation, tags };
    }
    const left = conversation.is_private ? undefined : conversation.tags.find((tag) => tag.is_private);
    if (left !== undefined) {
      throw new Problem(422, `inbox_id: ${left.id} is private and cannot be in a shared inbox.`);
    }
    if (body.assignee_id !== undefined) {
      conversation = assignedTo(conversation, assigneeNamed(request, body.assignee_id));
    }
    if (body.status === 'unassigned' && typeof body.assignee_id === 'string') {
      throw new Problem(422, 'status: unassigned takes no assignee_id.');
    }
    return keep(request, body.status === undefined ? conversation : inStatus(conversation, body.status));
  },

  assignConversation: (request) => {
    const conversation = conversationOf(request);
    return keep(request, assignedTo(conversation, assigneeNamed(request, request.body.assignee_id)));
  },

  remindOfConversation: (request) => {
    const { body, tables, at } = request;
    const conversation = conversationOf(request);
    const { id: teammate_id } = named(request, tables.teammates, body.teammate_id);
    const { scheduled_at } = body;
    if (scheduled_at !== null && scheduled_at <= at) {
      throw new Problem(422, `scheduled_at: ${scheduled_at} is past.`);
    }
    const others = (conversation.reminders ?? []).filter((one) => one.teammate_id !== teammate_id);
    const its = scheduled_at === null ? [] : [{ teammate_id, scheduled_at }];
    return keep(request, { ...conversation, reminders: [...others, ...its] });
  },

  addConversationTags: (request) => {
    const conversation = conversationOf(request);
    const tags = applicableTags(request, request.body.tag_ids, [inboxOf(request, conversation)]);
    return keep(request, taggedWith(conversation, tags));
  },

  removeConversationTags: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.tag_ids.map((id) => named(request, request.tables.tags, id));
    return keep(request, { ...conversation, tags: without(conversation.tags, gone) });
  },

  addConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const links = request.body.link_ids.map((id) => named(request, request.tables.links, id));
    const all = new Map([...conversation.links, ...links].map((link) => [link.id, link]));
    return keep(request, { ...conversation, links: [...all.values()] });
  },

  removeConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.link_ids.map((id) => named(request, request.tables.links, id));
    return keep(request, { ...conversation, links: without(conversation.links, gone) });
  },
} satisfies Partial<Handlers>;
