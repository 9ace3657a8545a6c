import { ServiceError } from './errors.ts';
import type { HttpRequest } from './http.ts';

/** Where a page is, and what to ask for there. */
export type PageAddress = Pick<HttpRequest, 'url' | 'target'>;

/** No server takes a longer address, in characters. */
const LONGEST_ADDRESS = 32 * 1024;

/** Longest part of an address that goes into a message. */
const LONGEST_PLACE = 100;

/**
 * What URL drops, so that an address leads elsewhere than its text seems to: tabs and line breaks anywhere, other control
 * characters and spaces at its end. None belongs in an address.
 */
const DROPPED = /\p{Cc}| $/u;

/**
 * A part of a path that is one dot or two, also encoded, once or several times over, or with what is cut off before the
 * dots are read: parameters behind a semicolon, spaces, a zero. A proxy may take it away together with the part before it:
 * then the token is not where the address seemed to lead.
 */
const DOT_SEGMENT =
  /^[^?#]*(?:[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\?#;]|%(?:25)*(?:2f|5c|3b|3f|23|20|0[0-9a-f]))/i;

/** A query of which nothing has to be written otherwise, so that it can be sent: visible ASCII, without quotes and brackets. */
const SENDABLE = /^[!$-;=?-~]*$/;

/**
 * Decides where `_pagination.next` may lead, as the access token goes along: to the origin of the API, and to the
 * origins that the configuration adds.
 */
export class AllowedOrigins {
  readonly #api: URL;
  readonly #exact: ReadonlySet<string>;
  readonly #oneLabel: readonly RegExp[];

  /**
   * @param apiUrl `{base_url}`
   * @param further origins; `https://*.example.com` stands for any one leading label
   */
  constructor(apiUrl: string, further: readonly string[] = []) {
    this.#api = new URL(apiUrl);
    this.#exact = new Set([this.#api.origin, ...further.filter((origin) => !origin.includes('*'))]);
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
    if (url === null) throw refused('something that is no address as the next page');
    if (!this.#allows(url)) throw refused(`${placeOf(url)} as the place of the next page`, this.#advice(url));
    if (url.username !== '' || url.password !== '')
      throw refused('an address with a user in it as the next page');
    if (DOT_SEGMENT.test(next))
      throw refused('an address that leads elsewhere by way of .. as the next page');
    return { url, target: targetOf(next, url) };
  }

  #allows({ origin, protocol }: URL): boolean {
    // The origin of "blob:https://…" is the inner one.
    if (!protocol.startsWith('http')) return false;
    return this.#exact.has(origin) || this.#oneLabel.some((pattern) => pattern.test(origin));
  }

  #advice({ protocol }: URL): string {
    // Production refuses an http origin in SERVICE_NEXT_ORIGINS.
    if (protocol === 'http:' && this.#api.protocol === 'https:') {
      return ' The service has to name its pages by https, as it is reached by https. Behind a proxy it learns that from X-Forwarded-Proto. Ask the operator of the service.';
    }
    return ' If that is right, add its origin to SERVICE_NEXT_ORIGINS. If the service has moved away from there, do nothing: the app reads the list again from its first page.';
  }
}

/** Path and query as given: of the query, URL would write an apostrophe as %27, and leave out an empty one. */
function targetOf(next: string, { pathname, search }: URL): string {
  const [, query] = /^[^?#]*\?([^#]*)/.exec(next) ?? [];
  return pathname + (query !== undefined && SENDABLE.test(query) ? `?${query}` : search);
}

/** Without path and query, which may hold a secret. The origin of another kind of address may be ours. */
function placeOf({ origin, protocol }: URL): string {
  return protocol.startsWith('http') ? origin.slice(0, LONGEST_PLACE) : `a ${protocol} address`;
}

function refused(what: string, advice = ''): ServiceError {
  const message = `The service names ${what}, where the access token may not go.${advice}`;
  return new ServiceError('bad_answer', message, { remedy: 'give_up' });
}

function toPattern(origin: string): RegExp {
  const escaped = origin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '[a-z0-9-]+');
  return new RegExp(`^${escaped}$`);
}

/** A list of more pages is taken for one without an end: a hundred million results, for which the limit needs six days. */
const MOST_PAGES = 1_000_000;

/**
 * Notices a chain of pages that leads back to where it was, or never ends ("Only a null `next` means the end", Pagination,
 * 4). Of all addresses it keeps one, of the newest page whose number is a power of two: it notices a circle of n pages that
 * begins with page m before page 2m + 3n (Brent's algorithm).
 */
export class PageChain {
  #pages = 0;
  #marked: string | undefined;

  /**
   * @param address where a page was, as the page before gave it
   * @param next what the page names as the next one
   * @throws ServiceError to wait on, when that is itself: asked again, it may lead on; to give up on, when the chain goes
   *   round in a circle, or is too long
   */
  follow(address: string, next: string | null): void {
    if (next === null) return;
    if (next === address)
      throw new ServiceError('bad_answer', 'The service sent a page that names itself as the next one.');
    this.#pages++;
    if ((this.#pages & (this.#pages - 1)) === 0) this.#marked = address;
    if (next === this.#marked)
      throw endless(
        "The service's pages go round in a circle: one leads back to a page that was read before.",
      );
    checkLength(this.#pages);
  }
}

/**
 * @param pages of a list, which lead on to another one
 * @throws ServiceError to give up on, when they are too many
 */
export function checkLength(pages: number): void {
  if (pages >= MOST_PAGES) throw endless(`The service's list does not end after ${MOST_PAGES} pages.`);
}

/** A list that does not get on, whatever its pages say: another try does not change that. */
export function endless(message: string): ServiceError {
  return new ServiceError('bad_answer', message, { remedy: 'give_up' });
}
