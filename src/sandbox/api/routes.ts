import { type Operation, ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import type { Route } from '../http/router.ts';
import { accountsHandlers } from './handlers/accounts.ts';
import { analyticsHandlers } from './handlers/analytics.ts';
import { applicationsHandlers } from './handlers/applications.ts';
import { channelsHandlers } from './handlers/channels.ts';
import { contactHandlers } from './handlers/contacts.ts';
import { conversationHandlers } from './handlers/conversations.ts';
import { identityHandlers } from './handlers/identity.ts';
import { inboxesHandlers } from './handlers/inboxes.ts';
import { knowledgeBasesHandlers } from './handlers/knowledge-bases.ts';
import { linksHandlers } from './handlers/links.ts';
import { messagesHandlers } from './handlers/messages.ts';
import { responsesHandlers } from './handlers/responses.ts';
import { tagHandlers } from './handlers/tags.ts';
import { teammatesHandlers } from './handlers/teammates.ts';
import type { ApiContext, Handlers } from './request.ts';

const HANDLERS: Handlers<Operation> = {
  ...identityHandlers,
  ...contactHandlers,
  ...conversationHandlers,
  ...messagesHandlers,
  ...tagHandlers,
  ...accountsHandlers,
  ...channelsHandlers,
  ...inboxesHandlers,
  ...linksHandlers,
  ...responsesHandlers,
  ...teammatesHandlers,
  ...knowledgeBasesHandlers,
  ...analyticsHandlers,
  ...applicationsHandlers,
};

/** A handler, told its parameters and its body: both are checked against the contract, which its types are made of. */
export type AnyHandler = (request: ApiContext & { params: Record<string, string>; body: unknown }) => object;

/** A route of the API, and who handles it. */
export interface ApiRoute {
  operation: Operation;
  contract: RouteContract;
  handler: AnyHandler;
}

/** The API's routes below `{base_url}` (Endpoints): the contract's, all of them. */
export const API_ROUTES: readonly Route<ApiRoute>[] = ROUTES.map(([operation, contract]) => ({
  method: contract.method,
  path: contract.path,
  handle: { operation, contract, handler: HANDLERS[operation] as AnyHandler },
}));
