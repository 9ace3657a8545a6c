import { z } from 'zod';
import { id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

const attachment = z.looseObject({
  id,
  filename: z.string(),
  url: z.url(),
  content_type: z.string(),
  size: z.int().nonnegative(),
});

/** A canned answer (the fields are our choice): `body` is HTML; `inbox_ids` says where it may be used, if not everywhere. */
export const cannedAnswer = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  subject: z.string().nullable(),
  body: z.string(),
  attachments: z.array(attachment),
  is_available_for_all_inboxes: z.boolean(),
  inbox_ids: z.array(id),
  created_at: timestamp,
  updated_at: timestamp,
});

export const responsesRoutes = defineRoutes({
  listResponses: {
    method: 'GET',
    path: '/responses',
    summary: 'Lists all canned answers',
    source: 'specified',
    list: true,
    answer: cannedAnswer,
  },
  getResponse: {
    method: 'GET',
    path: '/responses/:response_id',
    summary: 'Fetches one canned answer',
    source: 'specified',
    answer: cannedAnswer,
  },
});
