import { changeRecords } from '../state/change-records.ts';
import type { Grant, Token } from '../state/tokens.ts';
import type { World } from '../world.ts';
import type { Fault } from './fault.ts';

/** Who made a request, and what allowed it. */
export interface Allowance {
  companyId: string | undefined;
  /** The access token that made it. */
  token?: Token | undefined;
  /** What the token belongs to, or the code or refresh token in a request to the token route. */
  grant?: Grant | undefined;
}

/**
 * Does to the service what the fault wants, once the request took effect. API tokens are not revoked: they are no grant.
 * The records are those of the company that asked.
 */
export function leaveBehind(
  { companies, clock }: World,
  { revoke, records }: Fault,
  { companyId, token, grant }: Allowance,
): void {
  if (revoke === 'access_token' && token !== undefined) token.revoked = true;
  if (revoke === 'grant' && grant !== undefined) grant.revoked = true;
  const company = companies.get(companyId ?? '');
  if (records !== undefined && company !== undefined) changeRecords(company, records, clock.now());
}
