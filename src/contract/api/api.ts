import type { z } from 'zod';
import { accountsRoutes } from './accounts.ts';
import { analyticsRoutes } from './analytics.ts';
import { applicationsRoutes } from './applications.ts';
import { channelsRoutes } from './channels.ts';
import { contactRoutes } from './contacts.ts';
import { conversationRoutes } from './conversations.ts';
import { identityRoutes } from './identity.ts';
import { inboxesRoutes } from './inboxes.ts';
import { knowledgeBasesRoutes } from './knowledge-bases.ts';
import { linksRoutes } from './links.ts';
import { messagesRoutes } from './messages.ts';
import { responsesRoutes } from './responses.ts';
import type { PathParams, RouteContract } from './route.ts';
import { tagRoutes } from './tags.ts';
import { teammatesRoutes } from './teammates.ts';

/** Every route of the API, by the name of its operation (Endpoints). */
export const API = {
  ...identityRoutes,
  ...contactRoutes,
  ...conversationRoutes,
  ...messagesRoutes,
  ...tagRoutes,
  ...accountsRoutes,
  ...channelsRoutes,
  ...inboxesRoutes,
  ...linksRoutes,
  ...responsesRoutes,
  ...teammatesRoutes,
  ...knowledgeBasesRoutes,
  ...analyticsRoutes,
  ...applicationsRoutes,
};

type Table = typeof API;

/** Name of an operation: `createChildTag`. */
export type Operation = keyof Table;

/** The routes as a list, for code that needs no types of single routes. */
export const ROUTES = Object.entries(API) as [Operation, RouteContract][];

/** Values of the placeholders in an operation's path. */
export type ParamsOf<Op extends Operation> = PathParams<Table[Op]['path']>;

/** The body of an operation's request. */
export type BodyOf<Op extends Operation> = Table[Op] extends { body: infer Body extends z.ZodType }
  ? z.input<Body>
  : undefined;

/** The body after its check. */
export type CheckedBodyOf<Op extends Operation> = Table[Op] extends { body: infer Body extends z.ZodType }
  ? z.output<Body>
  : undefined;

/** A page of a list (Resources, "Common response members"). */
export interface Page<Item> {
  _pagination: { next: string | null };
  _links: { self: string };
  _results: Item[];
}

/** The JSON that an operation answers. */
export type AnswerOf<Op extends Operation> = Table[Op] extends { list: true }
  ? Page<z.output<Table[Op]['answer']>>
  : z.output<Table[Op]['answer']>;
