import { z } from 'zod';
import { customFields, id, links, timestamp } from './common.ts';
import { defineRoutes, type RouteContract } from './route.ts';
import { tag } from './tags.ts';

const named = z.looseObject({ id, name: z.string() });

/** A conversation. */
export const conversation = z.looseObject({
  _links: links,
  id,
  subject: z.string(),
  status: z.string(),
  assignee: named.nullable(),
  recipient: z.looseObject({ handle: z.string(), name: z.string().optional() }).nullable(),
  inbox: named,
  tags: z.array(tag.pick({ _links: true, id: true, name: true })),
  links: z.array(z.looseObject({ id })),
  custom_fields: customFields,
  last_message: z
    .looseObject({ excerpt: z.string(), is_inbound: z.boolean(), created_at: timestamp })
    .nullable(),
  /** Present after the first reminder. */
  reminders: z.array(z.looseObject({ teammate_id: id, scheduled_at: timestamp })).optional(),
  is_private: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
});

/** Changes of a conversation. `tag_ids` and `custom_fields` replace the old ones. */
export const conversationChanges = z.looseObject({
  subject: z.string().optional(),
  /** `open` reads back as `assigned` or `unassigned`. */
  status: z.enum(['open', 'assigned', 'unassigned', 'archived', 'deleted', 'spam']).optional(),
  assignee_id: id.nullable().optional(),
  inbox_id: id.optional(),
  tag_ids: z.array(id).optional(),
  custom_fields: customFields.optional(),
});

/** The assignee of a conversation; null removes it. */
const newAssignee = z.looseObject({ assignee_id: id.nullable() });

/** The reminder of a teammate; null cancels it. */
const newReminder = z.looseObject({ teammate_id: id, scheduled_at: timestamp.nullable() });

const tagIds = z.looseObject({ tag_ids: z.array(id).min(1) });
const linkIds = z.looseObject({ link_ids: z.array(id).min(1) });

// Each row of the guards' table that names several of these routes is one pool.
const changesGuard = {
  guard: 'resource',
  pool: 'conversation changes',
  by: [':conversation_id'],
} as const satisfies RouteContract['guard'];
const attachmentsGuard = {
  guard: 'resource',
  pool: 'conversation tags and links',
  by: [':conversation_id'],
} as const satisfies RouteContract['guard'];

export const conversationRoutes = defineRoutes({
  listConversations: {
    method: 'GET',
    path: '/conversations',
    summary: 'Lists conversations',
    source: 'specified',
    list: true,
    answer: conversation,
  },
  // Before the routes of one conversation: there is none that is called `search`.
  searchConversations: {
    method: 'GET',
    path: '/conversations/search/:query',
    summary: 'Lists the conversations in which all words of a query occur',
    source: 'specified',
    list: true,
    answer: conversation,
    guard: { guard: 'search', by: [] },
  },
  getConversation: {
    method: 'GET',
    path: '/conversations/:conversation_id',
    summary: 'Fetches one conversation',
    source: 'choice',
    answer: conversation,
  },
  updateConversation: {
    method: 'PATCH',
    path: '/conversations/:conversation_id',
    summary: 'Changes a conversation',
    source: 'specified',
    body: conversationChanges,
    answer: conversation,
    guard: changesGuard,
  },
  assignConversation: {
    method: 'PUT',
    path: '/conversations/:conversation_id/assignee',
    summary: 'Assigns a conversation to a teammate, or to no one',
    source: 'specified',
    body: newAssignee,
    answer: conversation,
    guard: changesGuard,
  },
  remindOfConversation: {
    method: 'PATCH',
    path: '/conversations/:conversation_id/reminders',
    summary: 'Sets or cancels a teammate’s reminder of a conversation',
    source: 'specified',
    body: newReminder,
    answer: conversation,
    guard: changesGuard,
  },
  addConversationTags: {
    method: 'POST',
    path: '/conversations/:conversation_id/tags',
    summary: 'Tags a conversation',
    source: 'specified',
    body: tagIds,
    answer: conversation,
    guard: attachmentsGuard,
    repeatable: true,
  },
  removeConversationTags: {
    method: 'DELETE',
    path: '/conversations/:conversation_id/tags',
    summary: 'Takes tags off a conversation',
    source: 'specified',
    body: tagIds,
    answer: conversation,
    guard: attachmentsGuard,
  },
  addConversationLinks: {
    method: 'POST',
    path: '/conversations/:conversation_id/links',
    summary: 'Puts links on a conversation',
    source: 'specified',
    body: linkIds,
    answer: conversation,
    guard: attachmentsGuard,
    repeatable: true,
  },
  removeConversationLinks: {
    method: 'DELETE',
    path: '/conversations/:conversation_id/links',
    summary: 'Takes links off a conversation',
    source: 'specified',
    body: linkIds,
    answer: conversation,
    guard: attachmentsGuard,
  },
});
