import { request } from 'undici';

/** Fields of a form. */
export type Fields = Record<string, string> | URLSearchParams;

/** A form of a page: what a browser without JavaScript would send if nothing was touched. */
export interface PageForm {
  action: URL;
  method: string;
  fields: URLSearchParams;
  html: string;
}

/** An answer, read to its end. */
export interface Page {
  /** Where it came from, after redirects. */
  url: URL;
  status: number;
  headers: Headers;
  body: string;
  /** The absolute target of a redirect that was not followed. */
  location: URL | undefined;
  json<Value>(): Value;
  /** The text that a person reads, without tags and with single blanks. */
  text(): string;
  /** The one form whose action's path is this, or matches. @throws Error when there is none, or several */
  form(action: string | RegExp): PageForm;
}

/** How a request goes otherwise than usual. */
export interface RequestOptions {
  /** Whether redirects are followed; they are by default. */
  follow?: boolean;
  headers?: Record<string, string>;
}

interface Cookie {
  value: string;
  path: string;
  secure: boolean;
  expiresAt: number;
}

const MAX_REDIRECTS = 10;

/** A browser without JavaScript: keeps cookies (by host and port), follows redirects, submits forms. */
export class HttpBrowser {
  readonly #baseUrl: string;
  readonly #cookies = new Map<string, Map<string, Cookie>>();

  /** @param baseUrl what relative addresses start from */
  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  get(target: string | URL, options: RequestOptions = {}): Promise<Page> {
    return this.#send('GET', new URL(target, this.#baseUrl), undefined, options);
  }

  /** Posts as a form of the same site does. */
  post(target: string | URL, fields: Fields = {}, options: RequestOptions = {}): Promise<Page> {
    return this.#send('POST', new URL(target, this.#baseUrl), new URLSearchParams(fields), options);
  }

  /** Sends a form as it stands in its page, with `fields` set over it. */
  submit(form: PageForm, fields: Fields = {}, options: RequestOptions = {}): Promise<Page> {
    const all = new URLSearchParams(form.fields);
    for (const [name, value] of new URLSearchParams(fields)) all.set(name, value);
    if (form.method === 'POST') return this.post(form.action, all, options);
    const target = new URL(form.action);
    target.search = all.toString();
    return this.get(target, options);
  }

  /** The cookies that a request to this address would carry, by name. */
  cookies(target: string | URL = '/'): Record<string, string> {
    const url = new URL(target, this.#baseUrl);
    const kept = [...(this.#cookies.get(url.host) ?? [])].filter(
      ([, { path, expiresAt }]) => url.pathname.startsWith(path) && expiresAt > Date.now(),
    );
    return Object.fromEntries(kept.map(([name, { value }]) => [name, value]));
  }

  /** Puts a cookie into the jar, as another page of the host could have. */
  setCookie(name: string, value: string): void {
    const cookie = { value, path: '/', secure: false, expiresAt: Number.POSITIVE_INFINITY };
    this.#jar(new URL(this.#baseUrl)).set(name, cookie);
  }

  /** A browser with the same cookies now, which goes its own way: another tab whose answers come elsewhere. */
  clone(): HttpBrowser {
    const other = new HttpBrowser(this.#baseUrl);
    for (const [host, jar] of this.#cookies) other.#cookies.set(host, new Map(jar));
    return other;
  }

  #jar(url: URL): Map<string, Cookie> {
    const jar = this.#cookies.get(url.host) ?? new Map<string, Cookie>();
    this.#cookies.set(url.host, jar);
    return jar;
  }

  async #send(method: string, first: URL, form: URLSearchParams | undefined, options: RequestOptions) {
    let [url, verb, body] = [first, method, form?.toString()];
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const cookies = Object.entries(this.cookies(url)).map(([name, value]) => `${name}=${value}`);
      const answer = await request(url, {
        method: verb as 'GET',
        body: body ?? null,
        headers: {
          ...(body === undefined
            ? {}
            : { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }),
          ...(cookies.length === 0 ? {} : { cookie: cookies.join('; ') }),
          ...options.headers,
        },
      });
      const page = await readPage(url, answer);
      this.#store(url, page.headers.getSetCookie());
      if (options.follow === false || page.location === undefined) return page;
      url = page.location;
      if (page.status !== 307 && page.status !== 308) [verb, body] = ['GET', undefined];
    }
    throw new Error(`More than ${MAX_REDIRECTS} redirects, the last one to ${url.origin}${url.pathname}`);
  }

  #store(url: URL, setCookies: readonly string[]): void {
    for (const header of setCookies) {
      const [pair = '', ...rest] = header.split(';').map((part) => part.trim());
      const attributes = new Map(
        rest.map((part) => [part.split('=')[0]?.toLowerCase() ?? '', part.slice(part.indexOf('=') + 1)]),
      );
      const maxAge = attributes.get('max-age');
      const expires = attributes.get('expires');
      const cookie = {
        value: pair.slice(pair.indexOf('=') + 1),
        path: attributes.get('path') ?? '/',
        secure: attributes.has('secure'),
        expiresAt:
          maxAge === undefined
            ? Date.parse(expires ?? '9999-12-31T00:00:00Z')
            : Date.now() + Number(maxAge) * 1_000,
      };
      const name = pair.slice(0, pair.indexOf('='));
      if (cookie.expiresAt <= Date.now()) this.#jar(url).delete(name);
      else this.#jar(url).set(name, cookie);
    }
  }
}

async function readPage(url: URL, answer: Awaited<ReturnType<typeof request>>): Promise<Page> {
  const body = await answer.body.text();
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    for (const item of [value ?? []].flat()) headers.append(name, item);
  }
  const location = headers.get('location');
  return {
    url,
    status: answer.statusCode,
    headers,
    body,
    location: answer.statusCode >= 300 && location !== null ? new URL(location, url) : undefined,
    json: <Value>() => JSON.parse(body) as Value,
    text: () =>
      unescapeHtml(body.replace(/<(script|style)[\s\S]*?<\/\1>|<[^>]*>/g, ' ').replace(/\s+/g, ' ')),
    form(action) {
      const all = parseForms(body, url);
      const found = all.filter(({ action: { pathname } }) =>
        typeof action === 'string' ? pathname === action : action.test(pathname),
      );
      if (found.length === 1 && found[0] !== undefined) return found[0];
      const paths = all.map(({ action: { pathname } }) => pathname).join(', ');
      throw new Error(`${found.length} forms of ${url.pathname} go to ${action}; it has: ${paths}`);
    },
  };
}

function parseForms(html: string, page: URL): PageForm[] {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, tag = '', content = '']) => {
    const attributes = parseAttributes(tag);
    const fields = new URLSearchParams();
    for (const [, input = ''] of content.matchAll(/<input\b([^>]*)>/gi)) {
      const of = parseAttributes(input);
      const isChoice = /^(radio|checkbox)$/.test(of.get('type') ?? '');
      const name = of.get('name');
      if (name === undefined || of.get('type') === 'submit' || (isChoice && !of.has('checked'))) continue;
      fields.append(name, of.get('value') ?? (isChoice ? 'on' : ''));
    }
    return {
      action: new URL(attributes.get('action') ?? '', page),
      method: (attributes.get('method') ?? 'get').toUpperCase(),
      fields,
      html: content,
    };
  });
}

function parseAttributes(tag: string): Map<string, string> {
  const pattern = /([\w:-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+)))?/g;
  return new Map(
    [...tag.matchAll(pattern)].map(([, name = '', double, single, bare]) => [
      name.toLowerCase(),
      unescapeHtml(double ?? single ?? bare ?? ''),
    ]),
  );
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeHtml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, (all, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? all;
    return String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal));
  });
}
