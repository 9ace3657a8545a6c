import { z } from 'zod';
import { id, links } from './common.ts';
import { defineRoutes } from './route.ts';

/** The company of a token; `teammate` is present if the token acts for one (Authentication, 3). */
export const identity = z.looseObject({
  _links: links,
  id,
  name: z.string(),
  teammate: z.looseObject({ _links: links, id, name: z.string() }).optional(),
});

export const identityRoutes = defineRoutes({
  getIdentity: {
    method: 'GET',
    path: '/me',
    summary: 'Tells which company a token belongs to, and which teammate it acts for',
    source: 'choice',
    answer: identity,
  },
});
