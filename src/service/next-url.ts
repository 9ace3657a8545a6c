import { ServiceError } from './errors.ts';
import type { HttpRequest } from './http.ts';

/** The address of a page, as a request takes it. */
export type PageAddress = Pick<HttpRequest, 'url' | 'target'>;

/** No server takes a longer address, in characters. */
const LONGEST_ADDRESS = 32 * 1024;

/** The longest origin that a message quotes, in characters. */
const LONGEST_ORIGIN = 100;

/** Characters that URL drops: with them, an address leads elsewhere than its text says. */
const DROPPED = /\p{Cc}| $/u;

/**
 * A path segment of one or two dots, plain or encoded, even several times, and also before `;`, a blank or a zero byte. A
 * proxy may resolve it, and the token would reach another path.
 */
const DOT_SEGMENT =
  /^[^?#]*(?:[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\?#;]|%(?:25)*(?:2f|5c|3b|3f|23|20|0[0-9a-f]))/i;

/** A query that can be sent as it is: visible ASCII without quotes and angle brackets. */
const SENDABLE = /^[!$-;=?-~]*$/;

/**
 * Decides where `_pagination.next` may lead, because the access token goes along: to the origin of the API and to
 * SERVICE_NEXT_ORIGINS.
 */
export class AllowedOrigins {
  readonly #api: URL;
  readonly #origins: readonly RegExp[];

  /**
   * @param apiUrl `{base_url}`
   * @param more origins; `https://*.example.com` allows any one leading label
   */
  constructor(apiUrl: string, more: readonly string[] = []) {
    this.#api = new URL(apiUrl);
    this.#origins = [this.#api.origin, ...more].map(toPattern);
  }

  /** The next page's address, as given (Pagination, 3). @throws ServiceError to give up on, if the token must not go there */
  check(next: string): PageAddress {
    const url = next.length > LONGEST_ADDRESS || DROPPED.test(next) ? null : URL.parse(next);
    if (url === null) throw forbidden('something that is no address');
    if (!this.#allows(url)) throw forbidden(originOf(url), this.#advice(url));
    if (url.username !== '' || url.password !== '') throw forbidden('an address with a user in it');
    if (DOT_SEGMENT.test(next)) throw forbidden('an address that leads elsewhere by way of ..');
    return { url, target: targetOf(next, url) };
  }

  #allows({ origin, protocol }: URL): boolean {
    // "blob:https://…" has the origin of its inner address.
    return protocol.startsWith('http') && this.#origins.some((pattern) => pattern.test(origin));
  }

  #advice({ protocol }: URL): string {
    // Production refuses an http origin in SERVICE_NEXT_ORIGINS.
    if (protocol === 'http:' && this.#api.protocol === 'https:') {
      return ' The service must name its pages by https, because the app reaches it by https. Behind a proxy it learns that from X-Forwarded-Proto. Ask the operator of the service.';
    }
    return ' If that is right, add its origin to SERVICE_NEXT_ORIGINS. If the service has moved away from there, do nothing: the app reads the list again from its first page.';
  }
}

/** Path and query as given. URL would write an apostrophe as %27 and leave out an empty query. */
function targetOf(next: string, { pathname, search }: URL): string {
  const [, query] = /^[^?#]*\?([^#]*)/.exec(next) ?? [];
  return pathname + (query !== undefined && SENDABLE.test(query) ? `?${query}` : search);
}

/** Without path and query, which may hold a secret. */
function originOf({ origin, protocol }: URL): string {
  return protocol.startsWith('http') ? origin.slice(0, LONGEST_ORIGIN) : `a ${protocol} address`;
}

function forbidden(what: string, advice = ''): ServiceError {
  const message = `The service names ${what} as the next page, where the access token may not go.${advice}`;
  return new ServiceError('bad_answer', message, { remedy: 'give_up' });
}

function toPattern(origin: string): RegExp {
  const escaped = origin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '[a-z0-9-]+');
  return new RegExp(`^${escaped}$`);
}

/** A list of more pages never ends: with 100 results a page, the limit would need six days for it. */
const MOST_PAGES = 1_000_000;

/**
 * Notices pages that lead back to an earlier page, or never end ("Only a null `next` means the end", Pagination, 4). It
 * keeps the address of the newest page whose number is a power of two (Brent's algorithm). So it notices a circle of n
 * pages behind m others before page 2m + 3n.
 */
export class PageChain {
  #pages = 0;
  #marked: string | undefined;

  /**
   * @param address of a page, as the page before named it
   * @param next the page that it names
   * @throws ServiceError to wait on if that is the page itself; to give up on if the pages form a circle or are too many
   */
  follow(address: string, next: string | null): void {
    if (next === null) return;
    if (next === address)
      throw new ServiceError('bad_answer', 'The service sent a page that names itself as the next one.');
    this.#pages++;
    if ((this.#pages & (this.#pages - 1)) === 0) this.#marked = address;
    if (next === this.#marked)
      throw endless("The service's pages form a circle: one leads back to an earlier page.");
    checkLength(this.#pages);
  }
}

/** @throws ServiceError to give up on, if a list has too many pages */
export function checkLength(pages: number): void {
  if (pages >= MOST_PAGES) throw endless(`The service's list does not end after ${MOST_PAGES} pages.`);
}

/** The pages of a list lead nowhere. Another try does not change that. */
export function endless(message: string): ServiceError {
  return new ServiceError('bad_answer', message, { remedy: 'give_up' });
}
