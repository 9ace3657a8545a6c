import { type Answer, json, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import type { Application } from '../state/applications.ts';
import { type Grant, isValid, type Token, type TokenPair } from '../state/tokens.ts';
import type { World } from '../world.ts';
import { authenticateClient } from './basic.ts';
import { bodyParameters, type Parameters } from './parameters.ts';

const BODY_MAX_BYTES = 64 * 1024;
const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** An error of the token route, as in RFC 6749, section 5.2: the specification does not show its body. */
function oauthError(
  error: string,
  description: string,
  status = 400,
  headers: Record<string, string> = {},
): Answer {
  return json(status, { error, error_description: description }, { ...NO_STORE, ...headers });
}

function tokenAnswer({ access, refresh }: TokenPair): Answer {
  return json(
    200,
    {
      access_token: access.value,
      refresh_token: refresh.value,
      expires_at: String(Math.floor(access.expiresAt / 1000)),
      token_type: 'Bearer',
    },
    NO_STORE,
  );
}

/** The answer to an authorization code: tokens, or why there are none. */
export function exchangeCode(
  world: World,
  application: Application,
  parameters: Parameters,
  now: number,
): Answer {
  const code = parameters.get('code');
  const redirectUri = parameters.get('redirect_uri');
  if (!code) return oauthError('invalid_request', 'The parameter code is missing.');
  if (!redirectUri) return oauthError('invalid_request', 'The parameter redirect_uri is missing.');
  const grant = world.codes.redeem(code, application.clientId, redirectUri, now);
  return typeof grant === 'string'
    ? oauthError('invalid_grant', grant)
    : tokenAnswer(world.tokens.issue(grant, now));
}

function usableRefreshToken(
  world: World,
  application: Application,
  value: string,
  now: number,
): Token | string {
  const token = world.tokens.find('refresh', value);
  if (token?.grant.clientId !== application.clientId) return 'The refresh token is unknown.';
  if (token.grant.revoked) return 'The refresh token was revoked.';
  return isValid(token, now) ? token : 'The refresh token has expired.';
}

function refresh(world: World, application: Application, parameters: Parameters, now: number): Answer {
  const value = parameters.get('refresh_token');
  if (!value) return oauthError('invalid_request', 'The parameter refresh_token is missing.');
  const token = usableRefreshToken(world, application, value, now);
  return typeof token === 'string'
    ? oauthError('invalid_grant', token)
    : tokenAnswer(world.tokens.refresh(token, now));
}

function grant(world: World, application: Application, parameters: Parameters): Answer {
  // One way to authenticate at a time (RFC 6749, section 2.3); the specification's is Basic.
  if (parameters.has('client_secret')) {
    return oauthError('invalid_request', 'client_secret belongs into the Basic header alone.');
  }
  const now = world.clock.now();
  switch (parameters.get('grant_type')) {
    case undefined:
    case '':
      return oauthError('invalid_request', 'The parameter grant_type is missing.');
    case 'authorization_code':
      return exchangeCode(world, application, parameters, now);
    case 'refresh_token':
      return refresh(world, application, parameters, now);
    default:
      return oauthError('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
  }
}

/** The grant that the request is about, valid or not. */
function grantOf(world: World, parameters: Parameters | Problem): Grant | undefined {
  if (parameters instanceof Problem) return undefined;
  return (
    world.codes.grantOf(parameters.get('code') ?? '') ??
    world.tokens.find('refresh', parameters.get('refresh_token') ?? '')?.grant
  );
}

/** The body's parameters, or what is wrong with it: errors of this route are all of OAuth's form. */
async function readParameters(call: Call): Promise<Parameters | Problem> {
  try {
    const body = await call.body(BODY_MAX_BYTES);
    const parameters = bodyParameters(call.headers['content-type'], body.toString('utf8'));
    return typeof parameters === 'string' ? new Problem(400, parameters) : parameters;
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** The token route: exchanges a code, or refreshes tokens (OAuth routes; Authentication, 5). */
export async function prepareToken(world: World, call: Call): Promise<Prepared> {
  const application = authenticateClient(world.applications, call.headers.authorization);
  const parameters = await readParameters(call);
  const granted = grantOf(world, parameters);
  return {
    companyId: granted?.companyId,
    application: application?.clientId,
    grant: granted,
    perform(instead) {
      if (instead !== undefined) return instead;
      // They close the connection after a body that is too long: the next request would wait for its rest.
      const headers = parameters instanceof Problem ? parameters.headers : {};
      if (application === undefined) {
        return oauthError(
          'invalid_client',
          'Basic authentication with client id and secret is needed.',
          401,
          {
            'www-authenticate': 'Basic realm="sandbox", charset="UTF-8"',
            ...headers,
          },
        );
      }
      return parameters instanceof Problem
        ? oauthError('invalid_request', parameters.message, 400, headers)
        : grant(world, application, parameters);
    },
  };
}
