import { z } from 'zod';
import { id, links } from './common.ts';
import { defineRoutes } from './route.ts';

/** Whose token it is. */
export const identity = z.looseObject({ _links: links, id, name: z.string() });

export const identityRoutes = defineRoutes({
  getIdentity: {
    method: 'GET',
    path: '/me',
    summary: 'Tells which company a token belongs to',
    source: 'choice',
    answer: identity,
  },
});
