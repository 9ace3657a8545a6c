import type { conversationRoutes } from '../../../contract/api/conversations.ts';
import type { Conversation } from '../../data/conversations.ts';
import { Problem } from '../../http/answer.ts';
import { listPage, listWhere } from '../list.ts';
import { applicableTags } from '../messaging/applicable-tags.ts';
import { assignedTo, inStatus, movedTo, taggedWith } from '../messaging/conversation-changes.ts';
import { hasWords, wordsOf } from '../messaging/search.ts';
import {
  type ApiContext,
  type ApiRequest,
  type Handlers,
  named,
  own,
  reach,
  seconds,
  show,
} from '../request.ts';

/** What a conversation is made of otherwise: by routes of their own, by messages, or by the ids in a body. */
const NOT_SENT = [
  'status',
  'assignee',
  'assignee_id',
  'inbox',
  'inbox_id',
  'tags',
  'tag_ids',
  'links',
  'link_ids',
  'recipient',
  'last_message',
  'reminders',
] as const;

function conversationOf(request: ApiContext & { params: { conversation_id: string } }): Conversation {
  return reach(request, request.tables.conversations, request.params.conversation_id);
}

/** Keeps a changed conversation, and shows it. */
function changed(request: ApiContext, conversation: Conversation): object {
  const { conversations } = request.tables;
  return show(
    request,
    conversations,
    conversations.replace({ ...conversation, updated_at: seconds(request.now) }),
  );
}

function inboxOf(request: ApiContext, { inbox }: Conversation) {
  return named(request, request.tables.inboxes, inbox.id);
}

function assigneeNamed(request: ApiContext, id: string | null) {
  return id === null ? null : named(request, request.tables.teammates, id);
}

function plainChanges(body: object): object {
  const kept: Record<string, unknown> = own(body);
  for (const name of NOT_SENT) delete kept[name];
  return kept;
}

function updateConversation(request: ApiRequest<'updateConversation'>) {
  const { tables, body } = request;
  let conversation = { ...conversationOf(request), ...plainChanges(body) };
  if (body.inbox_id !== undefined) {
    conversation = movedTo(conversation, named(request, tables.inboxes, body.inbox_id));
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
  return changed(request, body.status === undefined ? conversation : inStatus(conversation, body.status));
}

function assignConversation(request: ApiRequest<'assignConversation'>) {
  const conversation = conversationOf(request);
  return changed(request, assignedTo(conversation, assigneeNamed(request, request.body.assignee_id)));
}

function remindOfConversation(request: ApiRequest<'remindOfConversation'>) {
  const { body, tables, now } = request;
  const conversation = conversationOf(request);
  const { id } = named(request, tables.teammates, body.teammate_id);
  const { scheduled_at } = body;
  if (scheduled_at !== null && scheduled_at <= seconds(now)) {
    throw new Problem(422, `scheduled_at: ${scheduled_at} is past.`);
  }
  const others = (conversation.reminders ?? []).filter(({ teammate_id }) => teammate_id !== id);
  const its = scheduled_at === null ? [] : [{ teammate_id: id, scheduled_at }];
  return changed(request, { ...conversation, reminders: [...others, ...its] });
}

export const conversationHandlers: Handlers<keyof typeof conversationRoutes> = {
  listConversations: (request) => listPage(request, request.tables.conversations),
  searchConversations: (request) => {
    const words = wordsOf(request.params.query);
    return listWhere(request, request.tables.conversations, (conversation) => hasWords(conversation, words));
  },
  getConversation: (request) => show(request, request.tables.conversations, conversationOf(request)),
  updateConversation,
  assignConversation,
  remindOfConversation,
  addConversationTags: (request) => {
    const conversation = conversationOf(request);
    const tags = applicableTags(request, request.body.tag_ids, [inboxOf(request, conversation)]);
    return changed(request, taggedWith(conversation, tags));
  },
  removeConversationTags: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.tag_ids.map((id) => named(request, request.tables.tags, id).id);
    return changed(request, {
      ...conversation,
      tags: conversation.tags.filter(({ id }) => !gone.includes(id)),
    });
  },
  addConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const links = request.body.link_ids.map((id) => named(request, request.tables.links, id));
    const all = new Map([...conversation.links, ...links].map((link) => [link.id, link]));
    return changed(request, { ...conversation, links: [...all.values()] });
  },
  removeConversationLinks: (request) => {
    const conversation = conversationOf(request);
    const gone = request.body.link_ids.map((id) => named(request, request.tables.links, id).id);
    return changed(request, {
      ...conversation,
      links: conversation.links.filter(({ id }) => !gone.includes(id)),
    });
  },
};
