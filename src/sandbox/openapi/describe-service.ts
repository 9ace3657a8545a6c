import { type Operation, ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../contract/limits.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { type OAuthScope, type Reach, SCOPE } from '../../contract/scopes.ts';
import type { Settings } from '../world.ts';
import { answerSchemas, answersOf, ERROR_ANSWERS, HEADERS } from './answers.ts';
import { ERROR_SCHEMA, object, parameter, pathParameters, paths, refer, requestBody, text } from './nodes.ts';
import { oauthPaths, oauthSchemas } from './oauth-paths.ts';

/** The settings that the description follows. */
type Described = Pick<Settings, 'guards' | 'readings'>;

/** Members that every page of a list has (Resources, "Common response members"), and errors. */
const SCHEMAS = {
  Pagination: object({
    next: { type: ['string', 'null'], format: 'uri', description: 'The next page; null at the end.' },
  }),
  PageLinks: object({ self: { type: 'string', format: 'uri', description: 'This page.' } }),
  Error: ERROR_SCHEMA,
};

const PAGE_LIMIT = { type: 'integer', minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT };

const PARAMETERS = {
  limit: parameter('limit', 'query', 'Results on a page; `_pagination.next` carries it already.', PAGE_LIMIT),
  page_token: parameter('page_token', 'query', 'Which page: only as in `_pagination.next`.', text),
  Prefer: parameter('Prefer', 'header', '`respond-async` (RFC 7240): 202 at once, with `message_uid`.', text),
};

const SCOPE_MEANINGS: Record<OAuthScope, string> = {
  shared_resources: 'Read and change what the teams of the company share.',
  'shared_resources:read': 'Read what the teams of the company share.',
};

function securitySchemes(authUrl: string) {
  const [authorizationUrl, tokenUrl] = [authUrl + OAUTH_ROUTE.authorize, authUrl + OAUTH_ROUTE.token];
  const authorizationCode = { authorizationUrl, tokenUrl, refreshUrl: tokenUrl, scopes: SCOPE_MEANINGS };
  return {
    apiToken: { type: 'http', scheme: 'bearer', description: 'A token that a company made for itself.' },
    oauth: {
      type: 'oauth2',
      description: 'An access token of an application that an administrator authorized.',
      flows: { authorizationCode },
    },
    client: { type: 'http', scheme: 'basic', description: 'Client id and secret of the application.' },
  };
}

/** An OAuth token reaches what is shared; an API token reaches what its scopes allow. */
function security(reach: Reach, method: string): object[] {
  if (reach === 'knowledge_base') return [{ apiToken: [SCOPE.knowledgeBase] }];
  const scopes = method === 'GET' ? [SCOPE.shared, SCOPE.sharedRead] : [SCOPE.shared];
  return scopes.flatMap((scope) => [{ oauth: [scope] }, { apiToken: [scope] }]);
}

function guardOf({ guard: use }: RouteContract, guards: Described['guards']) {
  if (use === undefined) return undefined;
  const { tier, limit, share, windowMs: window_ms } = guards[use.guard];
  const most = { [share ? 'share_of_rate_limit' : 'limit']: limit };
  return { name: use.guard, tier, ...most, window_ms, grouped_by: use.by, shared_by: use.pool };
}

/** The part of the API that a route belongs to: the first segment of its path. */
function familyOf({ path }: RouteContract): string {
  return (path.split('/')[1] ?? '').replaceAll('_', ' ');
}

/** `x-source` tells the specification's routes from ours, `x-guard` how a route is guarded. */
function operationOf(operationId: Operation, route: RouteContract, described: Described) {
  const { method, path, summary, source, reach = 'shared', body, list, async: later } = route;
  const parameters = [...(list ? ['limit', 'page_token'] : []), ...(later ? ['Prefer'] : [])];
  return {
    operationId,
    summary,
    tags: [familyOf(route)],
    'x-source': source,
    'x-guard': guardOf(route, described.guards),
    security: security(reach, method),
    parameters: [...pathParameters(path), ...parameters.map((name) => refer('parameters', name))],
    requestBody: body && requestBody(body),
    responses: answersOf(route, described),
  };
}

/**
 * The service in OpenAPI 3.1, from the same contract that its routes and guards run on.
 *
 * @param origin where its reader reached it, like `http://127.0.0.1:4010`
 */
export function describeService(origin: string, described: Described) {
  const [apiUrl, authUrl] = [origin + SANDBOX_DEFAULTS.apiPath, origin + SANDBOX_DEFAULTS.authPath];
  const rows = ROUTES.map(([operation, route]) => ({ ...route, operation }));
  const summary = 'The sandbox of the service, as it runs here.';
  return {
    openapi: '3.1.1',
    info: { title: 'Customer messaging service', summary, version: '1.0.0' },
    servers: [{ url: apiUrl }],
    tags: [...new Set(rows.map(familyOf)), 'oauth'].map((name) => ({ name })),
    paths: {
      ...paths(rows, (row) => operationOf(row.operation, row, described)),
      ...oauthPaths(authUrl),
    },
    components: {
      schemas: { ...answerSchemas(), ...oauthSchemas(described.readings), ...SCHEMAS },
      headers: HEADERS,
      parameters: PARAMETERS,
      responses: ERROR_ANSWERS,
      securitySchemes: securitySchemes(authUrl),
    },
  };
}
