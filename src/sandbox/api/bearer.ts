import { type Answer, errorAnswer } from '../http/answer.ts';
import { type LimitScope, scopeOf } from '../limits/limiter.ts';
import type { Company } from '../state/company.ts';
import { isRevoked, isValid, type Token } from '../state/tokens.ts';
import type { World } from '../world.ts';

/** Who asks, what for, and which limit that counts against. */
export interface Caller {
  company: Company;
  /** The application's client id; undefined for an API token. */
  application: string | undefined;
  /** The access token; undefined for an API token. */
  token?: Token;
  /** Who granted the application its token; undefined for an API token. */
  teammateId: string | undefined;
  /** What the token is allowed (Authentication, 9). */
  scopes: readonly string[];
  /** Which limit its requests count against. */
  scope: LimitScope;
}

/** Why a request is refused; `caller` is who it would have been, when an expired or revoked token tells. */
export interface Refusal {
  answer: Answer;
  caller: Caller | undefined;
}

const REALM = 'Bearer realm="sandbox"';

function refuse(message: string, challenge: string, caller?: Caller): Refusal {
  return { answer: errorAnswer(401, message, { 'www-authenticate': challenge }), caller };
}

function refuseToken(message: string, caller?: Caller): Refusal {
  return refuse(message, `${REALM}, error="invalid_token", error_description="${message}"`, caller);
}

/**
 * Finds out who asks, by `Authorization: Bearer` with an access token or a company's API token (Authentication, 6).
 * A refresh token opens nothing here.
 *
 * @param authorization the request's header
 * @param now ms since 1970
 */
export function authenticate(world: World, authorization: string | undefined, now: number): Caller | Refusal {
  if (authorization === undefined) return refuse('An access token is needed: Authorization: Bearer.', REALM);
  const [, value] = /^Bearer +([^\s]+)$/i.exec(authorization) ?? [];
  if (value === undefined) return refuse('The API takes Bearer authentication alone.', REALM);
  const own = world.companies.byApiToken(value);
  if (own !== undefined) {
    const { company, apiToken } = own;
    return { company, application: undefined, teammateId: undefined, scopes: apiToken.scopes, scope: 'plan' };
  }
  const token = world.tokens.find('access', value);
  if (token === undefined) return refuseToken('The access token is unknown.');
  const { grant } = token;
  const company = world.companies.get(grant.companyId);
  if (company === undefined) return refuseToken('The access token is unknown.');
  const { clientId: application, teammateId, scopes } = grant;
  const caller = {
    company,
    application,
    token,
    teammateId,
    scopes,
    scope: scopeOf(world.applications.get(application)),
  };
  if (isRevoked(token)) return refuseToken('The access token was revoked.', caller);
  return isValid(token, now) ? caller : refuseToken('The access token has expired.', caller);
}
