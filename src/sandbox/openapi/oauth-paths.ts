import { OAUTH_ROUTE } from '../../contract/routes.ts';
import type { Readings } from '../types.ts';
import { content, refer } from './parts.ts';

const text = { type: 'string', minLength: 1 };

/** An object with these members, all of them required. */
function object(properties: Record<string, object>) {
  return { type: 'object', properties, required: Object.keys(properties) };
}

const EXPIRES_AT: Record<Readings['expiresAt'], object> = {
  string: { type: 'string', pattern: '^[0-9]+$', description: 'Seconds since 1970.' },
  number: { type: 'integer', description: 'Seconds since 1970.' },
  iso: { type: 'string', format: 'date-time' },
};

/** What the token route takes and answers (Endpoints, "OAuth routes"), and its errors (RFC 6749, section 5.2). */
export function oauthSchemas({ expiresAt }: Readings) {
  const code = {
    grant_type: { type: 'string', const: 'authorization_code' },
    code: text,
    redirect_uri: text,
  };
  const refresh = { grant_type: { type: 'string', const: 'refresh_token' }, refresh_token: text };
  return {
    Tokens: object({
      access_token: text,
      refresh_token: text,
      expires_at: EXPIRES_AT[expiresAt],
      token_type: { type: 'string', const: 'Bearer' },
    }),
    TokenRequest: { oneOf: [object(code), object(refresh)] },
    OAuthError: object({ error: text, error_description: text }),
  };
}

function operation(operationId: string, summary: string, source: string, members: object) {
  return { operationId, summary, tags: ['oauth'], 'x-source': source, security: [], ...members };
}

function parameter(name: string, description: string, schema: object = text, required = true) {
  return { name, in: 'query', required, description, schema };
}

const FORM = 'application/x-www-form-urlencoded';
const html = content({ type: 'string' }, 'text/html');

/** The OAuth routes; they have an address of their own. @param authUrl `{auth_url}` */
export function oauthPaths(authUrl: string): Record<string, object> {
  const servers = [{ url: authUrl }];
  const request = refer('schemas', 'TokenRequest');
  const error = content(refer('schemas', 'OAuthError'));
  return {
    [OAUTH_ROUTE.authorize]: {
      servers,
      get: operation('authorize', 'Starts an authorization in the browser of an administrator', 'specified', {
        parameters: [
          parameter('response_type', 'Always `code`.', { type: 'string', const: 'code' }),
          parameter('client_id', 'Client id of the application.'),
          parameter('redirect_uri', 'Where the browser comes back to; registered before.'),
          parameter('state', 'Comes back unchanged.', { type: 'string' }, false),
        ],
        responses: {
          200: { description: 'The consent page.', content: html },
          302: { description: 'Back to the application, with an error.' },
          400: { description: 'A page: nobody knows whose request this is.', content: html },
        },
      }),
      post: operation(
        'consent',
        'Sends the consent page’s form, with the query of the authorization',
        'choice',
        {
          requestBody: {
            required: true,
            content: content(
              {
                type: 'object',
                properties: { teammate_id: text, decision: { type: 'string', enum: ['approve', 'deny'] } },
              },
              FORM,
            ),
          },
          responses: {
            302: { description: 'Back to the application, with an error: the query is wrong.' },
            303: { description: 'Back to the application, with a code or an error.' },
            400: { description: 'The page again, or one that leads nowhere.', content: html },
          },
        },
      ),
    },
    [OAUTH_ROUTE.token]: {
      servers,
      post: operation('token', 'Exchanges a code for tokens, or refreshes them', 'specified', {
        security: [{ client: [] }],
        requestBody: { required: true, content: { ...content(request, FORM), ...content(request) } },
        responses: {
          200: { description: 'The tokens.', content: content(refer('schemas', 'Tokens')) },
          400: { description: 'The request or what it carries is wrong.', content: error },
          401: {
            description: 'Client id or secret is wrong.',
            headers: { 'www-authenticate': refer('headers', 'www-authenticate') },
            content: error,
          },
        },
      }),
    },
  };
}
