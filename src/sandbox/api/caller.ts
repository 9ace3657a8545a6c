import type { Teammate } from '../data/teammates.ts';
import { Problem } from '../http/answer.ts';
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
  token: Token | undefined;
  /** What the token is allowed (Authentication, 9). */
  scopes: readonly string[];
  /** Which limit its requests count against. */
  scope: LimitScope;
}

/** Who asks; with a `refusal`, an expired or revoked token only tells whose it was. */
interface Authenticated {
  caller?: Caller;
  refusal?: Problem;
}

const REALM = 'Bearer realm="sandbox"';

function refuse(message: string, challenge = ''): Problem {
  return new Problem(401, message, { 'www-authenticate': `${REALM}${challenge}` });
}

function refuseToken(message: string): Problem {
  return refuse(message, `, error="invalid_token", error_description="${message}"`);
}

/**
 * Finds out who asks, by `Authorization: Bearer` with an access token or a company's API token (Authentication, 6).
 * A refresh token opens nothing here. A caller, a refusal, or both.
 *
 * @param authorization the request's header
 * @param now ms since 1970
 */
export function authenticate(world: World, authorization: string | undefined, now: number): Authenticated {
  if (authorization === undefined) {
    return { refusal: refuse('An access token is needed: Authorization: Bearer.') };
  }
  const [, value] = /^Bearer +([^\s]+)$/i.exec(authorization) ?? [];
  if (value === undefined) return { refusal: refuse('The API takes Bearer authentication alone.') };
  const own = world.companies.byApiToken(value);
  if (own !== undefined) {
    const { company, apiToken } = own;
    const { scopes } = apiToken;
    return { caller: { company, application: undefined, token: undefined, scopes, scope: 'plan' } };
  }
  const token = world.tokens.find('access', value);
  const company = token && world.companies.get(token.grant.companyId);
  if (token === undefined || company === undefined)
    return { refusal: refuseToken('The access token is unknown.') };
  const { clientId: application, scopes } = token.grant;
  const scope = scopeOf(world.applications.get(application));
  const caller = { company, application, token, scopes, scope };
  if (isRevoked(token)) return { caller, refusal: refuseToken('The access token was revoked.') };
  return isValid(token, now) ? { caller } : { caller, refusal: refuseToken('The access token has expired.') };
}

/**
 * The teammate for whom a token acts: the one who authorized it, when it is user-scoped as those of tool-protocol
 * applications are (Authentication, 3). Any other token acts for the company: undefined.
 *
 * The specification only names user-scoped tokens. Our choice: `GET /me` tells the teammate, who is also the author of
 * messages that name no other. The token's reach is that of every OAuth token, as rule 9 names no exception.
 */
export function actingTeammate({ world, caller }: { world: World; caller: Caller }): Teammate | undefined {
  const { company, application, token } = caller;
  const isUserScoped = world.applications.get(application ?? '')?.kind === 'tool-protocol';
  return isUserScoped && token ? company.tables.teammates.find(token.grant.teammateId) : undefined;
}
