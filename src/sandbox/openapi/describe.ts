import { ROUTES } from '../../contract/api/api.ts';
import type { GuardRules } from '../../contract/guards.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../contract/limits.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { OAUTH_SCOPES } from '../../contract/scopes.ts';
import { ERROR_SCHEMA, errorResponses } from './errors.ts';
import { HEADERS } from './headers.ts';
import { bracedPath } from './names.ts';
import { OAUTH_SCHEMAS, oauthPaths } from './oauth-paths.ts';
import { familyOf, operationObject } from './operation.ts';
import { contractSchemas } from './schemas.ts';

/** Where the described service is, as its reader reached it, and what its guards allow. */
export interface Described {
  /** Like `http://127.0.0.1:4010`. */
  origin: string;
  guards: GuardRules;
}

/** Members that every page of a list has (Resources, "Common response members"). */
const PAGE_SCHEMAS = {
  Pagination: {
    type: 'object',
    properties: {
      next: { type: ['string', 'null'], format: 'uri', description: 'The next page; null at the end.' },
    },
    required: ['next'],
  },
  PageLinks: {
    type: 'object',
    properties: { self: { type: 'string', format: 'uri', description: 'This page.' } },
    required: ['self'],
  },
};

const PARAMETERS = {
  limit: {
    name: 'limit',
    in: 'query',
    description: 'Results on a page; the address of the next page carries it already.',
    schema: { type: 'integer', minimum: 1, maximum: PAGE_LIMIT_MAX, default: PAGE_LIMIT_DEFAULT },
  },
  page_token: {
    name: 'page_token',
    in: 'query',
    description: 'Which page: only as it stands in `_pagination.next`.',
    schema: { type: 'string', minLength: 1 },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    description: '`respond-async` (RFC 7240): 202 at once, with `message_uid`.',
    schema: { type: 'string' },
  },
};

function securitySchemes(authUrl: string) {
  return {
    apiToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'A token that a company made for itself; the scopes are fixed with it.',
    },
    oauth: {
      type: 'oauth2',
      description: 'An access token of an application that an administrator authorized.',
      flows: {
        authorizationCode: {
          authorizationUrl: `${authUrl}${OAUTH_ROUTE.authorize}`,
          tokenUrl: `${authUrl}${OAUTH_ROUTE.token}`,
          refreshUrl: `${authUrl}${OAUTH_ROUTE.token}`,
          scopes: Object.fromEntries(OAUTH_SCOPES.map((scope) => [scope, SCOPE_MEANINGS[scope]])),
        },
      },
    },
    client: { type: 'http', scheme: 'basic', description: 'Client id and secret of the application.' },
  };
}

const SCOPE_MEANINGS: Record<(typeof OAUTH_SCOPES)[number], string> = {
  shared_resources: 'Read and change what the teams of the company share.',
  'shared_resources:read': 'Read what the teams of the company share.',
};

/** The description of the service in OpenAPI 3.1, from the same contract that its routes and guards run on. */
export function describeService({ origin, guards }: Described) {
  const [apiUrl, authUrl] = [origin + SANDBOX_DEFAULTS.apiPath, origin + SANDBOX_DEFAULTS.authPath];
  const schemas = contractSchemas();
  const paths: Record<string, Record<string, object>> = {};
  for (const [operation, route] of ROUTES) {
    const path = bracedPath(route.path);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operationObject(operation, route, guards, schemas),
    };
  }
  const families = [...new Set(ROUTES.map(([, route]) => familyOf(route)))];
  return {
    openapi: '3.1.1',
    info: {
      title: 'Customer messaging service',
      summary: 'The sandbox of the service, as it runs here.',
      version: '1.0.0',
    },
    servers: [{ url: apiUrl }],
    tags: [...families, 'oauth'].map((name) => ({ name })),
    paths: { ...paths, ...oauthPaths(authUrl) },
    components: {
      schemas: { ...schemas.components, ...OAUTH_SCHEMAS, ...PAGE_SCHEMAS, Error: ERROR_SCHEMA },
      headers: HEADERS,
      parameters: PARAMETERS,
      responses: errorResponses(guards),
      securitySchemes: securitySchemes(authUrl),
    },
  };
}
