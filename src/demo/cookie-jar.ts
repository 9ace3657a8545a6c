interface Cookie {
  name: string;
  value: string;
  path: string;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

/** The cookies of one browser. Unlike a browser's they are kept by host *and port*: our apps share the host. */
export class CookieJar {
  readonly #byHost = new Map<string, Map<string, Cookie>>();

  /** Takes the Set-Cookie headers of an answer. */
  store(url: URL, setCookies: string[]): void {
    const cookies = this.#byHost.get(url.host) ?? new Map<string, Cookie>();
    this.#byHost.set(url.host, cookies);
    for (const header of setCookies) {
      const cookie = parse(header);
      if (cookie.expiresAt <= Date.now()) cookies.delete(cookie.name);
      else cookies.set(cookie.name, cookie);
    }
  }

  /** @returns the Cookie header of a request, or undefined when there is nothing to send */
  header(url: URL): string | undefined {
    const cookies = [...(this.#byHost.get(url.host)?.values() ?? [])].filter(
      ({ path, expiresAt }) => url.pathname.startsWith(path) && expiresAt > Date.now(),
    );
    return cookies.length === 0 ? undefined : cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
  }

  /** @returns a cookie's value by name */
  get(url: URL, name: string): string | undefined {
    return this.#byHost.get(url.host)?.get(name)?.value;
  }
}

function parse(header: string): Cookie {
  const [pair = '', ...rest] = header.split(';').map((part) => part.trim());
  const equals = pair.indexOf('=');
  const attributes = new Map(
    rest.map((part): [string, string] => {
      const [name = '', ...value] = part.split('=');
      return [name.toLowerCase(), value.join('=')];
    }),
  );
  const maxAge = attributes.get('max-age');
  const expires = attributes.get('expires');
  let expiresAt = Number.POSITIVE_INFINITY;
  if (maxAge !== undefined) expiresAt = Date.now() + Number(maxAge) * 1_000;
  else if (expires !== undefined) expiresAt = Date.parse(expires);
  return {
    name: pair.slice(0, equals),
    value: pair.slice(equals + 1),
    path: attributes.get('path') ?? '/',
    expiresAt,
  };
}
