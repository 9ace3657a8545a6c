import { ServiceError } from './errors.ts';
import type { HttpRequest } from './http.ts';
import { repeatsToken } from './repeated-token.ts';

/** Where a page is, and what to ask for there. */
export type PageAddress = Pick<HttpRequest, 'url' | 'target'>;

/**
 * Decides where `_pagination.next` may lead, as the access token goes along: to the origin of the API, and to the
 * origins that the configuration adds.
 */
export class AllowedOrigins {
  readonly #exact: ReadonlySet<string>;
  readonly #oneLabel: readonly RegExp[];

  /**
   * @param apiUrl `{base_url}`
   * @param further origins; `https://*.example.com` stands for any one leading label
   */
  constructor(apiUrl: string, further: readonly string[] = []) {
    this.#exact = new Set([new URL(apiUrl).origin, ...further.filter((origin) => !origin.includes('*'))]);
    this.#oneLabel = further.filter((origin) => origin.includes('*')).map(toPattern);
  }

  /**
   * The next page's address, as given (Pagination, 3).
   *
   * @param next what the answer carries
   * @throws ServiceError to give up on, when the token must not go there
   */
  check(next: string): PageAddress {
    const url = next.length > LONGEST_ADDRESS || DROPPED.test(next) ? null : URL.parse(next);
    if (url === null) throw refused('The service names something that is no address as the next page');
    if (!this.#allows(url)) {
      throw refused(
        `The service names ${placeOf(url)} as the place of the next page`,
        ' If that is right, add its origin to SERVICE_NEXT_ORIGINS; if the service has moved away from there, nothing is to be done: the list is read again from its first page.',
      );
    }
    if (url.username !== '' || url.password !== '')
      throw refused('The service names an address with a user in it as the next page');
    if (DOT_SEGMENT.test(next))
      throw refused('The service names an address that leads elsewhere by way of .. as the next page');
    return { url, target: targetOf(next, url) };
  }

  #allows({ origin, protocol }: URL): boolean {
    // The origin of "blob:https://…" is the inner one.
    if (!protocol.startsWith('http')) return false;
    return this.#exact.has(origin) || this.#oneLabel.some((pattern) => pattern.test(origin));
  }
}

/**
 * Refuses an address that carries the access token or another secret: it is kept in clear, until its page is read.
 *
 * @param givesSecretAway tells a text that holds a secret of the app
 * @throws ServiceError to give up on
 */
export function refuseSecrets(
  next: string,
  accessToken: string,
  givesSecretAway: (text: string) => boolean,
): void {
  const holdsToken = repeatsToken(next, accessToken);
  if (!holdsToken && !givesSecretAway(next)) return;
  const what = holdsToken ? 'the access token' : 'a secret of the app';
  throw new ServiceError(
    'give_up',
    `The service names an address that holds ${what} as the next page. Addresses are kept and logged along the way, where no secret may be.`,
  );
}

/** A query of which nothing has to be written otherwise, so that it can be sent: visible ASCII, without quotes and brackets. */
const SENDABLE = /^[!$-;=?-~]*$/;

/** Path and query as given: of the query, URL would write an apostrophe as %27, and leave out an empty one. */
function targetOf(next: string, { pathname, search }: URL): string {
  const [, query] = /^[^?#]*\?([^#]*)/.exec(next) ?? [];
  return pathname + (query !== undefined && SENDABLE.test(query) ? `?${query}` : search);
}

/**
 * A part of a path that is one dot or two, also encoded, once or several times over, or with what is cut off before the
 * dots are read: parameters behind a semicolon, spaces, a zero. Whoever reads it next, a proxy or the
 * service, may take it away together with the part before it: then the token is not where the address seemed to lead.
 */
const DOT_SEGMENT =
  /^[^?#]*(?:[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\?#;]|%(?:25)*(?:2f|5c|3b|3f|23|20|0[0-9a-f]))/i;

/**
 * What reading an address drops, so that it leads elsewhere than its text seems to: tabs and line breaks anywhere, other
 * control characters and spaces at its end. None belongs in an address.
 */
const DROPPED = /\p{Cc}| $/u;

/** No server takes a longer one, in characters. */
const LONGEST_ADDRESS = 32 * 1024;

/** Longest part of an address that goes into a message. */
const LONGEST_PLACE = 100;

/** Neither path nor query: there may be a secret in it. Nor the origin of another kind of address, which may be ours. */
function placeOf({ origin, protocol }: URL): string {
  return protocol.startsWith('http') ? origin.slice(0, LONGEST_PLACE) : `a ${protocol} address`;
}

function refused(what: string, advice = ''): ServiceError {
  return new ServiceError('give_up', `${what}, where the access token may not go.${advice}`);
}

function toPattern(origin: string): RegExp {
  const escaped = origin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '[a-z0-9-]+');
  return new RegExp(`^${escaped}$`);
}
