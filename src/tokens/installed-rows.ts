import type { TokenStore } from '../store/tokens.ts';
import type { Grant } from './oauth-client.ts';
import { sealedTokens } from './received-grants.ts';
import { newStamps } from './rotation-stamps.ts';
import type { NewInstance } from './tokens-types.ts';
import type { Vault } from './vault.ts';

/** What the store keeps of an install: its instance, and the tokens of its grant, sealed. */
export function installedRows(
  vault: Vault,
  { id, companyId, name, installedAt }: NewInstance,
  grant: Grant & { refreshToken: string },
): Parameters<TokenStore['install']> {
  const { accessExpiresAt, grantedAt } = grant;
  return [
    { id, company_id: companyId, name, installed_at: installedAt },
    {
      ...sealedTokens(vault, id, grant),
      access_expires_at: accessExpiresAt,
      ...newStamps(id, grantedAt),
      refreshed_at: grantedAt,
    },
  ];
}
