import { repeatsToken } from './repeated-token.ts';

/**
 * How much of a page's ids is looked at for every secret in any form, in UTF-16 units: many times what a page of a hundred
 * records has, and for a tenth of a second at the most.
 */
const MOST_LOOKED_AT = 64 * 1_024;

/**
 * Tells the ids of a page that give a secret away: an id stands in addresses, which histories and proxies keep. To look for
 * every secret in any form in a hundred ids takes up to a fifth of what a page takes. So that is done where the token that
 * the page was asked with stands in it as it is, or in an id, also escaped: to see that takes a thousandth. Such a page
 * may have ids of many megabytes all the same: what there is no time to look at counts as no id either.
 *
 * @param page its items, of which the ids count, and all of it as it came
 * @param givesSecretAway tells a text that holds a secret of the app, in any form
 * @returns tells why an id can be none, in a sentence; to be asked for one after the other
 */
export function secretIds(
  { items, bytes }: { items: readonly unknown[]; bytes: Buffer },
  accessToken: string,
  givesSecretAway: (text: string) => boolean,
): (id: string) => string | undefined {
  let holdsToken: boolean | undefined;
  let left = MOST_LOOKED_AT;
  // A page may be read twice: what is told of an id stays.
  const told = new Map<string, string | undefined>();
  const look = (id: string) => {
    if (repeatsToken(id, accessToken)) return 'Its id holds a secret of the app.';
    left -= id.length;
    if (left < 0)
      return 'Its page holds the access token, and has too many ids, or too long ones, to look for secrets in each.';
    return givesSecretAway(id) ? 'Its id holds a secret of the app.' : undefined;
  };
  return (id) => {
    // Not before it is asked for: the next request goes first.
    holdsToken ??= bytes.includes(accessToken) || items.some((item) => holdsAsId(item, accessToken));
    if (!holdsToken) return undefined;
    if (!told.has(id)) told.set(id, look(id));
    return told.get(id);
  };
}

function holdsAsId(item: unknown, token: string): boolean {
  if (typeof item !== 'object' || item === null || !('id' in item)) return false;
  // Escapes make it longer: most ids are passed over by their length.
  return typeof item.id === 'string' && item.id.length >= token.length && repeatsToken(item.id, token);
}
