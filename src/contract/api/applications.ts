import { z } from 'zod';
import { id, links, nonBlank, timestamp } from './common.ts';
import { defineRoutes } from './route.ts';

/** The subject of an event: an object of the application by type and id, or one word. */
const eventObject = z.union([
  nonBlank,
  z.looseObject({ type: nonBlank.optional(), id: z.union([nonBlank, z.number()]).optional() }),
]);

/** An event that an application sent (the fields are our choice: Events names the route alone). */
const applicationEvent = z.looseObject({
  _links: links,
  id,
  application_uid: id,
  type: z.string(),
  object: eventObject.nullable(),
  payload: z.unknown(),
  status: z.literal('accepted'),
  created_at: timestamp,
});

/** A new event. Its type and object make the grouping key of the guard. */
const newApplicationEvent = z.looseObject({
  type: nonBlank,
  object: eventObject.nullable().optional(),
  payload: z.unknown().optional(),
});

export const applicationsRoutes = defineRoutes({
  listApplicationEvents: {
    method: 'GET',
    path: '/applications/:application_uid/events',
    summary: 'Lists the events that an application told this company of',
    source: 'choice',
    list: true,
    answer: applicationEvent,
  },
  createApplicationEvent: {
    method: 'POST',
    path: '/applications/:application_uid/events',
    summary: 'Tells of an event in an application',
    source: 'specified',
    body: newApplicationEvent,
    status: 202,
    answer: applicationEvent,
    guard: { guard: 'resource', by: [':application_uid', 'event'] },
  },
  getApplicationEvent: {
    method: 'GET',
    path: '/applications/:application_uid/events/:event_id',
    summary: 'Fetches one event of an application',
    source: 'choice',
    answer: applicationEvent,
  },
});
