import { ROUTES } from '../../contract/api/api.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from '../../contract/limits.ts';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import type { OAuthScope } from '../../contract/scopes.ts';
import { answerSchemas } from './answer-schemas.ts';
import { oauthPaths, oauthSchemas } from './oauth-paths.ts';
import { type Described, familyOf, operationObject } from './operation.ts';
import { ERROR_SCHEMA, pathItems } from './parts.ts';
import { ERROR_RESPONSES, HEADERS } from './responses.ts';

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

const SCOPE_MEANINGS: Record<OAuthScope, string> = {
  shared_resources: 'Read and change what the teams of the company share.',
  'shared_resources:read': 'Read what the teams of the company share.',
};

function securitySchemes(authUrl: string) {
  const tokenUrl = `${authUrl}${OAUTH_ROUTE.token}`;
  const authorizationUrl = `${authUrl}${OAUTH_ROUTE.authorize}`;
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
        authorizationCode: { authorizationUrl, tokenUrl, refreshUrl: tokenUrl, scopes: SCOPE_MEANINGS },
      },
    },
    client: { type: 'http', scheme: 'basic', description: 'Client id and secret of the application.' },
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
  const families = [...new Set(rows.map(familyOf))];
  return {
    openapi: '3.1.1',
    info: {
      title: 'Customer messaging service',
      summary: 'The sandbox of the service, as it runs here.',
      version: '1.0.0',
    },
    servers: [{ url: apiUrl }],
    tags: [...families, 'oauth'].map((name) => ({ name })),
    paths: {
      ...pathItems(rows, (row) => operationObject(row.operation, row, described)),
      ...oauthPaths(authUrl),
    },
    components: {
      schemas: {
        ...answerSchemas(),
        ...oauthSchemas(described.readings),
        ...PAGE_SCHEMAS,
        Error: ERROR_SCHEMA,
      },
      headers: HEADERS,
      parameters: PARAMETERS,
      responses: ERROR_RESPONSES,
      securitySchemes: securitySchemes(authUrl),
    },
  };
}
