import { OAUTH_ROUTE } from '../../contract/routes.ts';
import type { Call } from '../http/call.ts';
import type { Prepare, Prepared } from '../http/exchange.ts';
import { findRoute, type Route } from '../http/router.ts';
import type { World } from '../world.ts';
import { prepareAuthorize } from './authorize.ts';
import { prepareToken } from './token.ts';

/** The routes below `{auth_url}` (Endpoints, "OAuth routes"), and where the consent form posts back to. */
const ROUTES: readonly Route<Prepare>[] = [
  { method: 'GET', path: OAUTH_ROUTE.authorize, handle: prepareAuthorize },
  { method: 'POST', path: OAUTH_ROUTE.authorize, handle: prepareAuthorize },
  { method: 'POST', path: OAUTH_ROUTE.token, handle: prepareToken },
];

/** Prepares a request to an OAuth route. Throws a `Problem` (404, 405) when there is no such route. */
export function prepareOAuth(world: World, call: Call): Prepared | Promise<Prepared> {
  return findRoute(ROUTES, call.method, call.path).handle(world, call);
}
