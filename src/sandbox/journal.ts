import type { IncomingHttpHeaders } from 'node:http';
import { mediaType } from './http/call.ts';
import type { JournalContent, JournalRow } from './types.ts';

/** One request, as it is written down: `search` is the raw query with its question mark, or empty. */
type JournalEntry = Omit<JournalRow, 'n' | 'query'> & { search: string };

const CAPACITY = 100_000;
const TEXT_MAX = 500;
const HIDDEN = '[hidden]';
const LONG_BODY = '[longer than 8 KiB]';
const SECRET_NAME = /^(code|state)$|secret|password|assertion|verifier|token$/i;

/**
 * Tokens, codes and Base64, percent-encoded or not, wherever they stand: nothing else that is readable is so long without
 * a break. A slash breaks a path, but not a value.
 */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const LOOKS_SECRET = /(?:[A-Za-z0-9_+=~-]|%[0-9A-Fa-f]{2}){32,}/g;
const VALUE_LOOKS_SECRET = /[A-Za-z0-9_+/=~-]{32,}/g;

/** The same in bodies, where more is an id; also our own tokens. */
const BODY_LOOKS_SECRET = /\b(?:at|rt|api)_[A-Za-z0-9_-]{20,}|[A-Za-z0-9_+=~-]{40,}/g;
const SECRET_IN_URL =
  /((?:^|[?&])(?:code|state|[^=&#]*(?:secret|password|assertion|verifier|(?<!page_)token))=)[^&#]*/gi;
const SECRET_MEMBER =
  /("(?:code|state|[^"]*(?:secret|password|assertion|verifier|token))"\s*:\s*\[?\s*)"(?:[^"\\]|\\.)*"?/gi;
const SECRET_HEADER = /authorization$|cookie|secret|token$|-key$/;

/** As much of a body is shown, and as much is kept of all of them, with about so much for headers. */
const BODY_SHOWN_MAX = 64 * 1024;
const BYTES_KEPT = 16 * 1024 * 1024;
const HEADERS_BYTES = 2_000;
/** To keep the pages of lists would cost each a tenth of its time. */
const ANSWER_KEPT_MAX = 8 * 1024;

/** The longest page token of ours; what is longer under that name is something else. */
const PAGE_TOKEN_MAX = 30;

function hide(text: string, secret = LOOKS_SECRET): string {
  return text.slice(0, TEXT_MAX).replace(secret, (found) => (UUID.test(found) ? found : HIDDEN));
}

function shown(name: string, value: string): string {
  if (name === 'page_token' && value.length <= PAGE_TOKEN_MAX) return value;
  return SECRET_NAME.test(name) ? HIDDEN : hide(value, VALUE_LOOKS_SECRET);
}

/** The parameters of a query or form; one that is given more than once has a list. */
function parametersOf(text: string): JournalRow['query'] {
  const parameters = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const before = parameters.get(name);
    parameters.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(parameters);
}

function shownQuery(search: string): JournalRow['query'] {
  const parameters = Object.entries(parametersOf(search)).map(([name, value]) => {
    return [
      hide(name),
      typeof value === 'string' ? shown(name, value) : value.map((one) => shown(name, one)),
    ];
  });
  return Object.fromEntries(parameters);
}

/** Headers and body of a request or an answer, as they went over the line. */
interface Content {
  headers: Readonly<IncomingHttpHeaders>;
  body: string | Buffer;
}

/** A request as it came, with its secrets. */
export interface Received extends Content {
  path: string;
  query: JournalRow['query'];
}

/** What is kept of a row beside it. */
interface Exchanged {
  path: string;
  search: string;
  request: Content;
  answer: Content;
  bytes: number;
}

/** The body's value: of JSON and of forms parsed, or else its text. */
export function bodyOf({ headers, body }: Content): unknown {
  const text = String(body);
  if (text === '') return null;
  const type = mediaType(headers['content-type']);
  if (type === 'application/x-www-form-urlencoded') return parametersOf(text);
  if (type !== 'application/json') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether what has this name, a header or a member, is secret. */
export function isSecret(name: string): boolean {
  return SECRET_HEADER.test(name) || SECRET_NAME.test(name);
}

/** A value of a body or header without the secrets in it. */
export function blanked(value: unknown): unknown {
  if (typeof value === 'string') {
    const text = value.replace(SECRET_IN_URL, `$1${HIDDEN}`).replace(SECRET_MEMBER, `$1"${HIDDEN}"`);
    return text.replace(BODY_LOOKS_SECRET, HIDDEN);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(blanked);
  const members = Object.entries(value).map(([name, one]) => {
    return [name, one !== null && SECRET_NAME.test(name) ? HIDDEN : blanked(one)];
  });
  return Object.fromEntries(members);
}

/** Headers and body without secrets. */
function shownContent(content: Content): JournalContent {
  const headers = Object.entries(content.headers).map(([name, value]) => {
    return [name, isSecret(name) ? HIDDEN : blanked(String(value))];
  });
  const size = Buffer.byteLength(content.body);
  let body = bodyOf(content);
  if (mediaType(content.headers['content-type']) === 'text/html') body = `A page of ${size} bytes.`;
  else if (size > BODY_SHOWN_MAX) body = Buffer.from(content.body).subarray(0, BODY_SHOWN_MAX).toString();
  try {
    return { headers: Object.fromEntries(headers), body: blanked(body) };
  } catch {
    return { headers: Object.fromEntries(headers), body: 'Its members are nested too deep.' };
  }
}

/** The newest 100,000 requests to the service's API and OAuth routes. */
export class Journal {
  readonly #rows: JournalRow[] = [];
  #count = 0;
  /** By number of the row, the oldest first; they go when they are too many bytes. */
  readonly #exchanged = new Map<number, Exchanged>();
  #bytes = 0;

  /** How many requests there were; also the number of the newest. */
  get count(): number {
    return this.#count;
  }

  add({ search, ...entry }: JournalEntry, request: Content, answer: Content): void {
    const n = this.#count + 1;
    this.#rows[this.#count % CAPACITY] = {
      n,
      ...entry,
      path: hide(entry.path),
      query: search === '' ? {} : shownQuery(search),
      ignored: entry.ignored.map((name) => hide(name)),
      duration_ms: Math.round(entry.duration_ms * 10) / 10,
    };
    this.#count = n;
    const { headers, body } = answer;
    const kept = body.length > ANSWER_KEPT_MAX ? LONG_BODY : body;
    const bytes = HEADERS_BYTES + request.body.length + kept.length;
    this.#exchanged.set(n, { path: entry.path, search, request, answer: { headers, body: kept }, bytes });
    this.#bytes += bytes;
    for (const [oldest, one] of this.#exchanged) {
      if (this.#bytes <= BYTES_KEPT) break;
      this.#exchanged.delete(oldest);
      this.#bytes -= one.bytes;
    }
  }

  /** The rows with a number above `after`, oldest first, without secrets; numbers start with 1. */
  after(after: number): JournalRow[] {
    const first = Math.max(after, this.#count - CAPACITY, 0);
    const rows = Array.from(
      { length: this.#count - first },
      (_, place) => this.#rows[(first + place) % CAPACITY],
    );
    return rows.filter((row) => row !== undefined);
  }

  /** The row with its headers and bodies, without secrets; null where they are not kept any more. */
  detailed(row: JournalRow): JournalRow {
    const { request, answer } = this.#exchanged.get(row.n) ?? {};
    return {
      ...row,
      request: request === undefined ? null : shownContent(request),
      answer: answer === undefined ? null : shownContent(answer),
    };
  }

  /** The path as it came. */
  pathOf({ n, path }: JournalRow): string {
    return this.#exchanged.get(n)?.path ?? path;
  }

  /** The request of a row; undefined where it is not kept any more. */
  received({ n }: JournalRow): Received | undefined {
    const kept = this.#exchanged.get(n);
    return kept && { ...kept.request, path: kept.path, query: parametersOf(kept.search) };
  }
}
