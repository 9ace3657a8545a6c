import { OAUTH_ROUTE } from '../../contract/routes.ts';

const text = { type: 'string', minLength: 1 };

/** What stands in an answer of the token route (Endpoints, "OAuth routes"), and its errors (RFC 6749, section 5.2). */
export const OAUTH_SCHEMAS = {
  Tokens: {
    type: 'object',
    properties: {
      access_token: text,
      refresh_token: text,
      expires_at: { type: 'string', pattern: '^[0-9]+$', description: 'Seconds since 1970.' },
      token_type: { type: 'string', const: 'Bearer' },
    },
    required: ['access_token', 'refresh_token', 'expires_at', 'token_type'],
  },
  TokenRequest: {
    oneOf: [
      {
        type: 'object',
        properties: {
          grant_type: { type: 'string', const: 'authorization_code' },
          code: text,
          redirect_uri: text,
        },
        required: ['grant_type', 'code', 'redirect_uri'],
      },
      {
        type: 'object',
        properties: { grant_type: { type: 'string', const: 'refresh_token' }, refresh_token: text },
        required: ['grant_type', 'refresh_token'],
      },
    ],
  },
  OAuthError: {
    type: 'object',
    properties: { error: text, error_description: text },
    required: ['error'],
  },
};

function json(description: string, schema: string, headers?: object) {
  return {
    description,
    ...(headers === undefined ? {} : { headers }),
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}

function parameter(name: string, required: boolean, description: string, schema: object = text) {
  return { name, in: 'query', required, description, schema };
}

const html = { 'text/html': { schema: { type: 'string' } } };
const tokenRequest = { schema: { $ref: '#/components/schemas/TokenRequest' } };

/** Where the consent page's form goes: our choice, as the page is. */
const CONSENT = {
  operationId: 'consent',
  summary: 'Sends the consent page’s form, with the query of the authorization',
  tags: ['oauth'],
  'x-source': 'choice',
  security: [],
  requestBody: {
    required: true,
    content: {
      'application/x-www-form-urlencoded': {
        schema: {
          type: 'object',
          properties: { teammate_id: text, decision: { type: 'string', enum: ['approve', 'deny'] } },
        },
      },
    },
  },
  responses: {
    302: { description: 'Back to the application, with an error: the query is wrong.' },
    303: { description: 'Back to the application, with a code or an error.' },
    400: { description: 'The page again, or one that leads nowhere.', content: html },
  },
};

/** The OAuth routes; they have an address of their own. @param authUrl `{auth_url}` */
export function oauthPaths(authUrl: string): Record<string, object> {
  const servers = [{ url: authUrl }];
  return {
    [OAUTH_ROUTE.authorize]: {
      servers,
      post: CONSENT,
      get: {
        operationId: 'authorize',
        summary: 'Starts an authorization: the browser of an administrator goes here',
        tags: ['oauth'],
        'x-source': 'specified',
        security: [],
        parameters: [
          parameter('response_type', true, 'Always `code`.', { type: 'string', const: 'code' }),
          parameter('client_id', true, 'Client id of the application.'),
          parameter('redirect_uri', true, 'Where the browser comes back to; registered before.'),
          parameter('state', false, 'Comes back unchanged.', { type: 'string' }),
        ],
        responses: {
          200: { description: 'The consent page.', content: html },
          302: { description: 'Back to the application, with an error.' },
          400: { description: 'A page: nobody knows whose request this is.', content: html },
        },
      },
    },
    [OAUTH_ROUTE.token]: {
      servers,
      post: {
        operationId: 'token',
        summary: 'Exchanges a code for tokens, or refreshes them',
        tags: ['oauth'],
        'x-source': 'specified',
        security: [{ client: [] }],
        requestBody: {
          required: true,
          content: {
            'application/x-www-form-urlencoded': tokenRequest,
            'application/json': tokenRequest,
          },
        },
        responses: {
          200: json('The tokens.', 'Tokens'),
          400: json('The request or what it carries is wrong.', 'OAuthError'),
          401: json('Client id or secret is wrong.', 'OAuthError', {
            'www-authenticate': { $ref: '#/components/headers/Authenticate' },
          }),
        },
      },
    },
  };
}
