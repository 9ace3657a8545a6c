import { request } from 'undici';
import { CookieJar } from './cookie-jar.ts';

const MAX_REDIRECTS = 10;

/** Fields of a form, as they are sent. */
export type Fields = Record<string, string> | URLSearchParams;

/** An answer, read to its end. */
export interface HttpAnswer {
  /** Where it came from, after redirects. */
  url: URL;
  status: number;
  headers: Headers;
  body: string;
  /** The absolute target of a redirect that was not followed. */
  location: URL | undefined;
  json(): unknown;
}

/** How a request goes otherwise than usual. */
export interface RequestOptions {
  /** Whether redirects are followed; they are by default. */
  follow?: boolean;
  headers?: Record<string, string>;
}

/** A browser without JavaScript or pages: keeps cookies, follows redirects. */
export class HttpSession {
  readonly cookies = new CookieJar();
  readonly #baseUrl: string;

  /** @param baseUrl what relative targets start from */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  get(target: string | URL, options: RequestOptions = {}): Promise<HttpAnswer> {
    return this.#send('GET', target, undefined, options);
  }

  /** Sends the fields of a form. */
  post(target: string | URL, fields: Fields = {}, options: RequestOptions = {}): Promise<HttpAnswer> {
    return this.#send('POST', target, new URLSearchParams(fields).toString(), options);
  }

  async #send(
    method: 'GET' | 'POST',
    target: string | URL,
    form: string | undefined,
    { follow = true, headers = {} }: RequestOptions,
  ): Promise<HttpAnswer> {
    let url = new URL(target, this.#baseUrl);
    let verb = method;
    let content = form;
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const cookie = this.cookies.header(url);
      const answer = await request(url, {
        method: verb,
        body: content ?? null,
        headers: {
          ...(content === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
          ...(cookie === undefined ? {} : { cookie }),
          ...headers,
        },
      });
      const page = await readAnswer(url, answer);
      this.cookies.store(url, page.headers.getSetCookie());
      if (!follow || page.location === undefined) return page;
      url = page.location;
      // 307 and 308 repeat the request; after the others a browser comes with GET.
      if (page.status !== 307 && page.status !== 308) {
        verb = 'GET';
        content = undefined;
      }
    }
    throw new Error(`More than ${MAX_REDIRECTS} redirects, the last one to ${url.origin}${url.pathname}`);
  }
}

async function readAnswer(url: URL, answer: Awaited<ReturnType<typeof request>>): Promise<HttpAnswer> {
  const body = await answer.body.text();
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const item of [value ?? []].flat()) headers.append(name, item);
  }
  const location = headers.get('location');
  const isRedirect = answer.statusCode >= 300 && answer.statusCode < 400 && location !== null;
  return {
    url,
    status: answer.statusCode,
    headers,
    body,
    location: isRedirect ? new URL(location, url) : undefined,
    json: () => JSON.parse(body),
  };
}
