import { ServiceError } from './errors.ts';

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
  check(next: string): URL {
    const url = URL.parse(next);
    const allowed =
      url !== null &&
      url.username === '' &&
      url.password === '' &&
      (this.#exact.has(url.origin) || this.#oneLabel.some((pattern) => pattern.test(url.origin)));
    if (allowed) return url;
    const place = url === null ? 'something that is no address' : url.origin;
    throw new ServiceError(
      'give_up',
      `The service names ${place} as the place of the next page, where the access token may not go. If that is right, add its origin to SERVICE_NEXT_ORIGINS.`,
    );
  }
}

function toPattern(origin: string): RegExp {
  const escaped = origin.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '[a-z0-9-]+');
  return new RegExp(`^${escaped}$`);
}
