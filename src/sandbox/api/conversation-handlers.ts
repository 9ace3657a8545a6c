import type { CheckedBodyOf } from '../../contract/api/api.ts';
import type { Conversation } from '../data/conversations.ts';
import type { Tag } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import { listPage } from './list.ts';
import { applicableTags, taggedWith, without } from './message-handlers.ts';
import { type ApiContext, type Handlers, own } from './request.ts';

/** Members of a conversation that only the service sets. */
const NOT_SENT =
  /^(status|assignee|assignee_id|inbox|inbox_id|tags|tag_ids|links|link_ids|recipient|last_message|reminders)$/;

type StatusAsked = NonNullable<CheckedBodyOf<'updateConversation'>['status']>;

function conversationOf(request: ApiContext & { params: { conversation_id: string } }): Conversation {
  return request.reach('conversations', request.params.conversation_id);
}

/** The tags that a body names, if they can be applied in the conversation's inbox. */
function tagsFor(request: ApiContext, { inbox }: Conversation, tagIds: readonly string[]): Tag[] {
  return applicableTags(request, tagIds, [request.named('inboxes', inbox.id)]);
}

/** The conversation with a new assignee or none. An archived conversation stays archived. */
function assignedTo(request: ApiContext, conversation: Conversation, id: string | null): Conversation {
  const teammate = id === null ? null : request.named('teammates', id);
  const assignee = teammate && { id: teammate.id, name: teammate.name, email: teammate.email };
  const isOpen = ['assigned', 'unassigned'].includes(conversation.status);
  return { ...conversation, assignee, status: isOpen ? openStatus({ assignee }) : conversation.status };
}

function openStatus({ assignee }: Pick<Conversation, 'assignee'>): string {
  return assignee === null ? 'unassigned' : 'assigned';
}

/** The conversation, open again if it was not. */
export function opened(conversation: Conversation): Conversation {
  return { ...conversation, status: openStatus(conversation) };
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
  const words = query.normalize('NFC').toLowerCase().match(/\S+/g);
  if (words === null) throw new Problem(400, 'The query has no words.');
  return words;
}

/** Whether all words, as whole words or parts of them, occur in the list's view of a conversation. */
function hasWords(conversation: Conversation, words: readonly string[]): boolean {
  const { subject, recipient, tags, last_message } = conversation;
  const names = tags.map(({ name }) => name);
  const texts = [subject, recipient?.name, recipient?.handle, last_message?.excerpt, ...names];
  const text = texts.join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Handlers of conversations, except those that only read one or list all. */
export const conversationHandlers = {
  searchConversations: (request) => {
    const words = wordsOf(request.params.query);
    return listPage(request, 'conversations', (conversation) => hasWords(conversation, words));
  },

  updateConversation: (request) => {
    const { body } = request;
    const sent = Object.entries(own(body)).filter(([name]) => !NOT_SENT.test(name));
    let conversation: Conversation = { ...conversationOf(request), ...Object.fromEntries(sent) };
    if (body.inbox_id !== undefined) {
      const { id, name, is_private } = request.named('inboxes', body.inbox_id);
      conversation = { ...conversation, inbox: { id, name }, is_private };
    }
    if (body.tag_ids !== undefined) {
      conversation = { ...conversation, tags: tagsFor(request, conversation, body.tag_ids) };
    }
    const left = conversation.is_private ? undefined : conversation.tags.find((tag) => tag.is_private);
    if (left !== undefined) {
      throw new Problem(422, `inbox_id: ${left.id} is private and cannot be in a shared inbox.`);
    }
    if (body.assignee_id !== undefined) conversation = assignedTo(request, conversation, body.assignee_id);
    if (body.status === 'unassigned' && typeof body.assignee_id === 'string') {
      throw new Problem(422, 'status: unassigned takes no assignee_id.');
    }
    if (body.status !== undefined) conversation = inStatus(conversation, body.status);
    return request.change('conversations', conversation);
  },

  assignConversation: (request) => {
    const conversation = assignedTo(request, conversationOf(request), request.body.assignee_id);
    return request.change('conversations', conversation);
  },

  remindOfConversation: (request) => {
    const { scheduled_at } = request.body;
    const conversation = conversationOf(request);
    const { id: teammate_id } = request.named('teammates', request.body.teammate_id);
    if (scheduled_at !== null && scheduled_at <= request.at) {
      throw new Problem(422, `scheduled_at: ${scheduled_at} is past.`);
    }
    const others = (conversation.reminders ?? []).filter((one) => one.teammate_id !== teammate_id);
    const its = scheduled_at === null ? [] : [{ teammate_id, scheduled_at }];
    return request.change('conversations', { ...conversation, reminders: [...others, ...its] });
  },

  addConversationTags: (request) => {
    const conversation = conversationOf(request);
    const tags = tagsFor(request, conversation, request.body.tag_ids);
    return request.change('conversations', taggedWith(conversation, tags));
  },

  removeConversationTags: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.tag_ids.map((id) => request.named('tags', id));
    return request.change('conversations', { ...conversation, tags: without(conversation.tags, gone) });
  },

  addConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const links = request.body.link_ids.map((id) => request.named('links', id));
    const all = new Map([...conversation.links, ...links].map((link) => [link.id, link]));
    return request.change('conversations', { ...conversation, links: [...all.values()] });
  },

  removeConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.link_ids.map((id) => request.named('links', id));
    return request.change('conversations', { ...conversation, links: without(conversation.links, gone) });
  },
} satisfies Partial<Handlers>;
