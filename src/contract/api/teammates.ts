import { z } from 'zod';
import { customFields, id, links, nonBlank, timestamp } from './common.ts';
import { inbox } from './inboxes.ts';
import { defineRoutes } from './route.ts';

/**
 * A person who works at the company (the fields are our choice). `name` is made of first and last name. The signature is
 * a private resource (Authentication, 9): it is shown to tokens alone that reach such.
 */
export const teammate = z.looseObject({
  _links: links.extend({ related: z.looseObject({ inboxes: z.url() }) }),
  id,
  email: z.string(),
  username: z.string(),
  first_name: z.string(),
  last_name: z.string(),
  name: z.string(),
  is_admin: z.boolean(),
  is_available: z.boolean(),
  is_blocked: z.boolean(),
  custom_fields: customFields,
  signature: z.string().nullable().optional(),
  created_at: timestamp,
  updated_at: timestamp,
});

/** Changes of a teammate; a `name` alone is taken apart into first and last name. Rank, block and address stay as they are. */
const teammateChanges = z.looseObject({
  username: z.string().regex(/^\S+$/, 'must be one word').optional(),
  first_name: z.string().optional(),
  last_name: z.string().optional(),
  name: nonBlank.optional(),
  is_available: z.boolean().optional(),
  custom_fields: customFields.optional(),
  signature: z.string().nullable().optional(),
});

export const teammatesRoutes = defineRoutes({
  listTeammates: {
    method: 'GET',
    path: '/teammates',
    summary: 'Lists teammates',
    source: 'choice',
    list: true,
    answer: teammate,
  },
  getTeammate: {
    method: 'GET',
    path: '/teammates/:teammate_id',
    summary: 'Fetches one teammate',
    source: 'choice',
    answer: teammate,
  },
  updateTeammate: {
    method: 'PATCH',
    path: '/teammates/:teammate_id',
    summary: 'Changes a teammate',
    source: 'specified',
    body: teammateChanges,
    answer: teammate,
    guard: { guard: 'resource', by: [':teammate_id'] },
  },
  listTeammateInboxes: {
    method: 'GET',
    path: '/teammates/:teammate_id/inboxes',
    summary: 'Lists the inboxes that a teammate can access',
    source: 'specified',
    list: true,
    answer: inbox,
  },
});
