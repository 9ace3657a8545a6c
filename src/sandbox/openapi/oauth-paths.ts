import { OAUTH_ROUTE } from '../../contract/routes.ts';
import type { Readings } from '../types.ts';
import { headers } from './answers.ts';
import { content, object, parameter, refer, text } from './nodes.ts';

const EXPIRES_AT: Record<Readings['expiresAt'], object> = {
  string: { type: 'string', pattern: '^[0-9]+$', description: 'Seconds since 1970.' },
  number: { type: 'integer', description: 'Seconds since 1970.' },
  iso: { type: 'string', format: 'date-time' },
};

/** What the token route takes and answers (Endpoints, "OAuth routes"), and its errors (RFC 6749, section 5.2). */
export function oauthSchemas({ expiresAt }: Readings) {
  const tokens = { access_token: text, refresh_token: text };
  return {
    Tokens: object({ ...tokens, expires_at: EXPIRES_AT[expiresAt], token_type: { const: 'Bearer' } }),
    TokenRequest: {
      oneOf: [
        object({ grant_type: { const: 'authorization_code' }, code: text, redirect_uri: text }),
        object({ grant_type: { const: 'refresh_token' }, refresh_token: text }),
      ],
    },
    OAuthError: object({ error: text, error_description: text }),
  };
}

const FORM = 'application/x-www-form-urlencoded';

function operation(operationId: string, summary: string, source: string, members: object) {
  return { operationId, summary, tags: ['oauth'], 'x-source': source, security: [], ...members };
}

function query(name: string, description: string, schema: object = text) {
  return { ...parameter(name, 'query', description, { ...schema }), required: name !== 'state' };
}

/** The OAuth routes; they have an address of their own. @param authUrl `{auth_url}` */
export function oauthPaths(authUrl: string) {
  const servers = [{ url: authUrl }];
  const page = (description: string) => ({ description, content: content({ type: 'string' }, 'text/html') });
  const answer = (description: string, schema: string) => ({
    description,
    content: content(refer('schemas', schema)),
  });
  const authorize = operation('authorize', 'Starts an authorization in the browser', 'specified', {
    parameters: [
      query('response_type', 'Always `code`.', { const: 'code' }),
      query('client_id', 'Client id of the application.'),
      query('redirect_uri', 'Where the browser comes back to; registered before.'),
      query('state', 'Comes back unchanged.', { type: 'string' }),
    ],
    responses: {
      200: page('The consent page.'),
      302: { description: 'Back to the application, with an error.' },
      400: page('A page: nobody knows whose request this is.'),
    },
  });
  const decision = { type: 'string', enum: ['approve', 'deny'] };
  const consent = operation('consent', 'Sends the form of the consent page, with its query', 'choice', {
    requestBody: {
      required: true,
      content: content({ type: 'object', properties: { teammate_id: text, decision } }, FORM),
    },
    responses: {
      302: { description: 'Back to the application, with an error: the query is wrong.' },
      303: { description: 'Back to the application, with a code or an error.' },
      400: page('The page again, or one that leads nowhere.'),
    },
  });
  const request = refer('schemas', 'TokenRequest');
  const token = operation('token', 'Exchanges a code for tokens, or refreshes them', 'specified', {
    security: [{ client: [] }],
    requestBody: { required: true, content: { ...content(request, FORM), ...content(request) } },
    responses: {
      200: answer('The tokens.', 'Tokens'),
      400: answer('The request or what it carries is wrong.', 'OAuthError'),
      401: { ...answer('Client id or secret is wrong.', 'OAuthError'), headers: headers('www-authenticate') },
    },
  });
  return {
    [OAUTH_ROUTE.authorize]: { servers, get: authorize, post: consent },
    [OAUTH_ROUTE.token]: { servers, post: token },
  };
}
