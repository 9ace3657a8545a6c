import type { InstalledInstance, InstalledTokens } from '../store/store-install.ts';
import type { Grant } from './oauth-client.ts';
import { newStamps } from './rotation-stamps.ts';
import { sealedTokens } from './sealed-tokens.ts';
import type { NewInstance } from './tokens-types.ts';
import type { Vault } from './vault.ts';

/** What the store keeps of an install: its instance, and the tokens of its grant, sealed. */
export function installedRows(
  vault: Vault,
  { id, companyId, name, installedAt }: NewInstance,
  grant: Grant & { refreshToken: string },
): [InstalledInstance, InstalledTokens] {
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
