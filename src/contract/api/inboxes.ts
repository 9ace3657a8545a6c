import { z } from 'zod';
import { customFields, id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/**
 * An inbox (the fields are our choice): a private one belongs to one teammate, out of reach of OAuth tokens
 * (Authentication, 9). `teammate_ids` are those who can access it.
 */
export const inbox = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  is_private: z.boolean(),
  teammate_id: id.nullable(),
  teammate_ids: z.array(id),
  custom_fields: customFields,
  created_at: timestamp,
  updated_at: timestamp,
});

export const inboxesRoutes = defineRoutes({
  listInboxes: {
    method: 'GET',
    path: '/inboxes',
    summary: 'Lists inboxes',
    source: 'choice',
    list: true,
    answer: inbox,
  },
  getInbox: {
    method: 'GET',
    path: '/inboxes/:inbox_id',
    summary: 'Fetches one inbox',
    source: 'choice',
    answer: inbox,
  },
});
