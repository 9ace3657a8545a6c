import type { Tokens } from '../../src/tokens/tokens.ts';

/** The access token that a list of contacts would be asked for with. */
export async function accessTokenFrom(
  tokens: Pick<Tokens, 'heldToken'>,
  instanceId: string,
  rejected?: string,
): Promise<string> {
  return (await tokens.heldToken(instanceId, rejected, 'contacts')).text;
}
