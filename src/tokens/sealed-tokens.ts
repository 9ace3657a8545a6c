import type { TokenRow } from '../store/tokens.ts';
import type { Vault } from './vault.ts';

/** Both tokens of an instance, as they are stored. */
export function sealedTokens(
  vault: Vault,
  instanceId: string,
  { accessToken, refreshToken }: { accessToken: string; refreshToken: string },
): Pick<TokenRow, 'access_token' | 'refresh_token'> {
  return {
    access_token: vault.seal(accessToken, { instanceId, purpose: 'access_token' }),
    refresh_token: vault.seal(refreshToken, { instanceId, purpose: 'refresh_token' }),
  };
}
