import { z } from 'zod';
import { customFields, id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

const named = z.looseObject({ id, name: z.string() });

/** A conversation. */
export const conversation = z.looseObject({
  _links: links,
  id,
  subject: z.string(),
  status: z.string(),
  assignee: named.nullable(),
  recipient: z.looseObject({ handle: z.string() }).nullable(),
  inbox: named,
  tags: z.array(named),
  links: z.array(z.looseObject({ id })),
  custom_fields: customFields,
  last_message: z.looseObject({}).nullable(),
  is_private: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
});

export const conversationRoutes = defineRoutes({
  listConversations: {
    method: 'GET',
    path: '/conversations',
    summary: 'Lists conversations',
    source: 'specified',
    list: true,
    answer: conversation,
  },
  getConversation: {
    method: 'GET',
    path: '/conversations/:conversation_id',
    summary: 'Fetches one conversation',
    source: 'choice',
    answer: conversation,
  },
});
