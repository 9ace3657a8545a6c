import { repeatsToken } from './repeated-token.ts';

/**
 * Tells the ids of a page that give a secret away: an id stands in addresses, which histories and proxies keep. To look for
 * every secret in any form in a hundred ids takes up to a fifth of what a page takes. So that is done where the token that
 * the page was asked with stands in it as it is, or in an id, also escaped: to see that takes a thousandth.
 *
 * @param page its items, of which the ids count, and all of it as it came
 * @param givesSecretAway tells a text that holds a secret of the app, in any form
 */
export function secretIds(
  { items, bytes }: { items: readonly unknown[]; bytes: Buffer },
  accessToken: string,
  givesSecretAway: (text: string) => boolean,
): (id: string) => boolean {
  let holdsToken: boolean | undefined;
  return (id) => {
    // Not before it is asked for: the next request goes first.
    holdsToken ??= bytes.includes(accessToken) || items.some((item) => holdsAsId(item, accessToken));
    return holdsToken && (repeatsToken(id, accessToken) || givesSecretAway(id));
  };
}

function holdsAsId(item: unknown, token: string): boolean {
  if (typeof item !== 'object' || item === null || !('id' in item)) return false;
  // Escapes make it longer: most ids are passed over by their length.
  return typeof item.id === 'string' && item.id.length >= token.length && repeatsToken(item.id, token);
}
