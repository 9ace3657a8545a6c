import { z } from 'zod';
import { id, links, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** A tag (Resources, "Tag"); `_links.children` leads to its child tags. */
export const tag = z.looseObject({
  _links: links.extend({ children: z.url() }),
  id,
  name: z.string(),
  description: z.string().nullable(),
  highlight: z.string().nullable(),
  parent_tag_id: id.nullable(),
  is_private: z.boolean(),
  /** The owner; null for a shared tag. */
  teammate_id: id.nullable(),
  created_at: timestamp,
  updated_at: timestamp,
});

const fields = {
  name: z.string().trim().min(1),
  description: z.string().nullable().optional(),
  highlight: z.string().nullable().optional(),
};

/** A new child tag. */
const newTag = z.looseObject(fields);

/** Changes of a tag; `parent_tag_id` moves it (null: it has no parent any more). */
const tagChanges = z.looseObject(fields).extend({ parent_tag_id: id.nullable() }).partial();

export const tagRoutes = defineRoutes({
  listTags: {
    method: 'GET',
    path: '/tags',
    summary: 'Lists tags',
    source: 'choice',
    list: true,
    answer: tag,
  },
  getTag: {
    method: 'GET',
    path: '/tags/:tag_id',
    summary: 'Fetches one tag',
    source: 'choice',
    answer: tag,
  },
  updateTag: {
    method: 'PATCH',
    path: '/tags/:tag_id',
    summary: 'Changes a tag; can give it another parent',
    source: 'specified',
    body: tagChanges,
    answer: tag,
  },
  listChildTags: {
    method: 'GET',
    path: '/tags/:tag_id/children',
    summary: 'Lists child tags',
    source: 'specified',
    list: true,
    answer: tag,
  },
  createChildTag: {
    method: 'POST',
    path: '/tags/:tag_id/children',
    summary: 'Creates a child tag',
    source: 'specified',
    body: newTag,
    status: 201,
    answer: tag,
  },
});
