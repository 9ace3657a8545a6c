import { createHash, timingSafeEqual } from 'node:crypto';
import { type Answer, clipped, json, orProblem, Problem } from '../http/answer.ts';
import { type Call, ignoredParts } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import type { Applications } from '../state/applications.ts';
import { isValid, type Token, type TokenPair } from '../state/tokens.ts';
import type { Application, Readings } from '../types.ts';
import type { World } from '../world.ts';
import { bodyParameters, type Parameters } from './parameters.ts';

/** Parameters of a token request, with those of clients that repeat their credentials. */
const BODY = ['grant_type', 'code', 'redirect_uri', 'refresh_token', 'client_id', 'client_secret'];
const BODY_MAX_BYTES = 64 * 1024;
const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** An error of the token route, as in RFC 6749, section 5.2: the specification does not show its body. */
function oauthError(error: string, error_description: string, status = 400, headers = {}): Answer {
  return json(status, { error, error_description: clipped(error_description) }, { ...NO_STORE, ...headers });
}

/** `expires_at` in the configured form; the specification shows none. */
function expiryOf({ expiresAt }: Token, form: Readings['expiresAt']): string | number {
  const seconds = Math.floor(expiresAt / 1000);
  if (form === 'iso') return new Date(seconds * 1000).toISOString();
  return form === 'number' ? seconds : String(seconds);
}

function tokenAnswer({ settings }: World, application: Application, { access, refresh }: TokenPair): Answer {
  const tokens = {
    access_token: access.value,
    refresh_token: refresh.value,
    expires_at: expiryOf(access, application.expires_at ?? settings.readings.expiresAt),
    token_type: 'Bearer',
  };
  return json(200, tokens, NO_STORE);
}

function withSecret(applications: Applications, id: string, secret: string): Application | undefined {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const application = applications.get(id);
  if (application === undefined) return undefined;
  return timingSafeEqual(digest(application.client_secret), digest(secret)) ? application : undefined;
}

/** Undoes the encoding of forms; a text that is none stays as it is. */
function formDecoded(text: string): string {
  return new URLSearchParams(`x=${text.replaceAll('&', '%26')}`).get('x') ?? text;
}

/**
 * The application whose credentials a request carries, or why they are refused.
 *
 * The header must be exactly `Basic <BASE64(client_id:client_secret)>` (Authentication, 5): split at the first colon,
 * and, other than in RFC 6749, section 2.3.1, not form-encoded before.
 */
function authenticateClient(
  applications: Applications,
  authorization: string | undefined,
): Application | string {
  const [, encoded = ''] = /^Basic +(\S+)$/i.exec(authorization ?? '') ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  const [, id, secret] = /^([^:]*):(.*)$/s.exec(bytes.toString('utf8')) ?? [];
  if (id === undefined || secret === undefined || bytes.toString('base64') !== encoded) {
    return 'Basic authentication with client id and secret is needed.';
  }
  const application = withSecret(applications, id, secret);
  if (application !== undefined) return application;
  return withSecret(applications, formDecoded(id), formDecoded(secret)) === undefined
    ? 'Client id or secret is wrong.'
    : 'The credentials are form-encoded (RFC 6749, section 2.3.1): send client_id:client_secret as they are, in Base64.';
}

/** The answer to an authorization code: tokens, or why there are none. */
export function exchangeCode(world: World, application: Application, parameters: Parameters): Answer {
  const { client_id } = application;
  const now = world.clock.now();
  const code = parameters.get('code');
  const redirectUri = parameters.get('redirect_uri');
  if (!code) return oauthError('invalid_request', 'The parameter code is missing.');
  if (!redirectUri) return oauthError('invalid_request', 'The parameter redirect_uri is missing.');
  const grant = world.codes.redeem(code, client_id, redirectUri, now);
  if (typeof grant === 'string') return oauthError('invalid_grant', grant);
  return tokenAnswer(world, application, world.tokens.issue(grant, now));
}

function refresh(world: World, application: Application, parameters: Parameters): Answer {
  const { client_id } = application;
  const now = world.clock.now();
  const value = parameters.get('refresh_token');
  if (!value) return oauthError('invalid_request', 'The parameter refresh_token is missing.');
  const token = world.tokens.find('refresh', value);
  if (token?.grant.clientId !== client_id) {
    return oauthError('invalid_grant', 'The refresh token is unknown.');
  }
  if (token.grant.revoked) return oauthError('invalid_grant', 'The refresh token was revoked.');
  if (!isValid(token, now)) return oauthError('invalid_grant', 'The refresh token has expired.');
  return tokenAnswer(world, application, world.tokens.refresh(token, now));
}

function grant(world: World, application: Application, parameters: Parameters): Answer {
  const { client_id, client_secret } = application;
  for (const [name, value] of Object.entries({ client_id, client_secret })) {
    if ((parameters.get(name) ?? value) !== value) {
      return oauthError('invalid_request', `${name} in the body differs from the Basic header.`);
    }
  }
  switch (parameters.get('grant_type')) {
    case undefined:
    case '':
      return oauthError('invalid_request', 'The parameter grant_type is missing.');
    case 'authorization_code':
      return exchangeCode(world, application, parameters);
    case 'refresh_token':
      return refresh(world, application, parameters);
    default:
      return oauthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
  }
}

/** The token route: exchanges a code, or refreshes tokens (OAuth routes; Authentication, 5). */
export async function prepareToken(world: World, call: Call): Promise<Prepared> {
  const application = authenticateClient(world.applications, call.headers.authorization);
  // Errors of this route are all of OAuth's form.
  const parameters = await orProblem(async () =>
    bodyParameters(call.headers['content-type'], await call.body(BODY_MAX_BYTES)),
  );
  const sent: Parameters = parameters instanceof Problem ? new Map() : parameters;
  const refreshToken = world.tokens.find('refresh', sent.get('refresh_token') ?? '');
  // The grant that the request is about, valid or not.
  const granted = world.codes.grantOf(sent.get('code') ?? '') ?? refreshToken?.grant;
  return {
    companyId: granted?.companyId,
    application: typeof application === 'string' ? undefined : application.client_id,
    grant: granted,
    ignored: [...ignoredParts('query', call.query.keys(), []), ...ignoredParts('body', sent.keys(), BODY)],
    perform(instead) {
      if (instead !== undefined) return instead;
      // They close the connection after a body that is too long: the next request would wait for its rest.
      const headers = parameters instanceof Problem ? parameters.headers : {};
      if (typeof application === 'string') {
        const challenge = { 'www-authenticate': 'Basic realm="sandbox", charset="UTF-8"' };
        return oauthError('invalid_client', application, 401, { ...challenge, ...headers });
      }
      return parameters instanceof Problem
        ? oauthError('invalid_request', parameters.message, 400, headers)
        : grant(world, application, parameters);
    },
  };
}
