import { z } from 'zod';
import { customFields, id, links, nonBlank, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** A link: an object of another application that conversations are about (the fields are our choice). */
export const link = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  type: z.string(),
  external_url: z.url().nullable(),
  custom_fields: customFields,
  created_at: timestamp,
  updated_at: timestamp,
});

/** A new link: with an address, a name, or both. Without a name the address is its name. */
const newLink = z
  .looseObject({
    name: nonBlank.optional(),
    type: nonBlank.optional(),
    external_url: z.url('must be a URL').nullable().optional(),
    custom_fields: customFields.optional(),
  })
  .refine(({ name, external_url }) => (name ?? external_url ?? undefined) !== undefined, {
    path: ['external_url'],
    error: 'is needed where there is no name',
  });

export const linksRoutes = defineRoutes({
  listLinks: {
    method: 'GET',
    path: '/links',
    summary: 'Lists links',
    source: 'choice',
    list: true,
    answer: link,
  },
  createLink: {
    method: 'POST',
    path: '/links',
    summary: 'Creates a link to an object of another application',
    source: 'specified',
    body: newLink,
    status: 201,
    answer: link,
    guard: { guard: 'dynamic-object', by: [] },
  },
  getLink: {
    method: 'GET',
    path: '/links/:link_id',
    summary: 'Fetches one link',
    source: 'choice',
    answer: link,
  },
});
