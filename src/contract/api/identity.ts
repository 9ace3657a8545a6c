import { z } from 'zod';
import { id, links } from './common.ts';
import { defineRoutes } from './route.ts';

/** Whose token it is: a company's; `teammate` is there when the token acts for one (Authentication, 3). */
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
