import type { Grant, Token } from '../state/tokens.ts';
import type { Fault } from './fault.ts';

/** What a request was allowed by. */
export interface Allowance {
  /** The access token that made it. */
  token?: Token | undefined;
  /** What the token belongs to, or the code or refresh token in a request to the token route. */
  grant?: Grant | undefined;
}

/** Does to the service what the fault wants, once the request took effect. API tokens are not revoked: they are no grant. */
export function leaveBehind({ revoke }: Fault, { token, grant }: Allowance): void {
  if (revoke === 'access_token' && token !== undefined) token.revoked = true;
  if (revoke === 'grant' && grant !== undefined) grant.revoked = true;
}
