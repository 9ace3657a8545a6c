import { z } from 'zod';
import { customFields, id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** A person whom the company talks to. */
export const contact = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  description: z.string(),
  avatar_url: z.string().nullable(),
  handles: z.array(z.looseObject({ handle: z.string(), source: z.string() })),
  groups: z.array(z.looseObject({ name: z.string() })),
  custom_fields: customFields,
  is_private: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
});

export const contactRoutes = defineRoutes({
  listContacts: {
    method: 'GET',
    path: '/contacts',
    summary: 'Lists contacts',
    source: 'specified',
    list: true,
    answer: contact,
  },
  getContact: {
    method: 'GET',
    path: '/contacts/:contact_id',
    summary: 'Fetches one contact',
    source: 'choice',
    answer: contact,
  },
});
