const MAX_REDIRECTS = 10;

/** An answer, read to its end. */
interface Page {
  /** The address after redirects. */
  url: URL;
  status: number;
  body: string;
}

/** A browser without JavaScript: it keeps cookies and follows redirects. It prefers JSON, so the app's errors are JSON. */
export class Browser {
  /** By host and port, as the app and the sandbox share a host. */
  readonly #cookies = new Map<string, Map<string, string>>();
  readonly #baseUrl: string;

  /** @param baseUrl resolves relative addresses */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  /**
   * Opens an address, or posts the fields of a form to it.
   *
   * @throws Error after ten redirects
   */
  async open(target: string | URL, fields?: Record<string, string>): Promise<Page> {
    let url = new URL(target, this.#baseUrl);
    let form = fields === undefined ? null : new URLSearchParams(fields);
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const cookies = this.#cookiesOf(url);
      const answer = await fetch(url, {
        method: form === null ? 'GET' : 'POST',
        body: form,
        headers: {
          accept: 'application/json, */*;q=0.5',
          cookie: [...cookies].map((cookie) => cookie.join('=')).join('; '),
        },
        redirect: 'manual',
      });
      for (const header of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
        cookies.set(name, value);
      }
      const body = await answer.text();
      const location = answer.headers.get('location');
      if (location === null) return { url, status: answer.status, body };
      url = new URL(location, url);
      form = null;
    }
    throw new Error(`${url.origin}${url.pathname} is behind more than ${MAX_REDIRECTS} redirects.`);
  }

  #cookiesOf({ host }: URL): Map<string, string> {
    const cookies = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, cookies);
    return cookies;
  }
}
