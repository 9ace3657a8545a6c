/** One request in the journal, as it is kept: `search` is the raw query with its question mark, or empty. */
export interface JournalEntry {
  /** When it arrived, ms since 1970 on the service's clock. */
  at: number;
  method: string;
  /** Below `{base_url}`, or `/oauth/…` below `{auth_url}`. */
  path: string;
  search: string;
  /** 0 when the connection was closed without an answer. */
  status: number;
  companyId: string | undefined;
  /** The application's client id; undefined for API tokens. */
  application: string | undefined;
  tier: string | undefined;
  remaining: number | undefined;
  /** Id of the fault that it met. */
  fault?: string | undefined;
  /** Real time until the answer, in milliseconds. */
  durationMs: number;
}

/** A row of `GET /_sandbox/requests`. */
export interface JournalRow {
  n: number;
  at: number;
  method: string;
  path: string;
  /** A parameter that is given more than once has a list. */
  query: Record<string, string | string[]>;
  status: number;
  company_id: string | null;
  application: string | null;
  tier: string | null;
  remaining: number | null;
  /** Id of the ordered fault that it met. */
  fault: string | null;
  duration_ms: number;
}

const CAPACITY = 100_000;
const TEXT_MAX = 500;
const HIDDEN = '[hidden]';
const SECRET_NAME = /^(code|state)$|secret|password|assertion|verifier|token$/i;

/**
 * Tokens, codes and Base64, percent-encoded or not, wherever they stand: nothing else that is readable is so long without
 * a break. A slash breaks a path, but not a value.
 */
const LOOKS_SECRET = /(?:[A-Za-z0-9_+=~-]|%[0-9A-Fa-f]{2}){32,}/g;
const VALUE_LOOKS_SECRET = /[A-Za-z0-9_+/=~-]{32,}/g;

/** The longest page token of ours; what is longer under that name is something else. */
const PAGE_TOKEN_MAX = 30;

function hide(text: string, secret = LOOKS_SECRET): string {
  return text.slice(0, TEXT_MAX).replace(secret, HIDDEN);
}

function shown(name: string, value: string): string {
  if (name === 'page_token' && value.length <= PAGE_TOKEN_MAX) return value;
  return SECRET_NAME.test(name) ? HIDDEN : hide(value, VALUE_LOOKS_SECRET);
}

function shownQuery(search: string): JournalRow['query'] {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(search)) {
    const before = query.get(hide(name));
    query.set(hide(name), before === undefined ? shown(name, value) : [before, shown(name, value)].flat());
  }
  return Object.fromEntries(query);
}

function row(n: number, entry: JournalEntry): JournalRow {
  return {
    n,
    at: entry.at,
    method: entry.method,
    path: hide(entry.path),
    query: shownQuery(entry.search),
    status: entry.status,
    company_id: entry.companyId ?? null,
    application: entry.application ?? null,
    tier: entry.tier ?? null,
    remaining: entry.remaining ?? null,
    fault: entry.fault ?? null,
    duration_ms: Math.round(entry.durationMs * 10) / 10,
  };
}

/** What the service was asked: the newest 100,000 requests to its API and OAuth routes, without secrets. */
export class Journal {
  readonly #entries: JournalEntry[] = [];
  #count = 0;

  /** How many requests there were; also the number of the newest. */
  get count(): number {
    return this.#count;
  }

  add(entry: JournalEntry): void {
    this.#entries[this.#count % CAPACITY] = { ...entry, path: entry.path.slice(0, TEXT_MAX) };
    this.#count += 1;
  }

  /** The rows with a number above `after`, oldest first; numbers start with 1. */
  after(after: number): JournalRow[] {
    const rows: JournalRow[] = [];
    for (let n = Math.max(after, this.#count - CAPACITY, 0) + 1; n <= this.#count; n++) {
      const entry = this.#entries[(n - 1) % CAPACITY];
      if (entry !== undefined) rows.push(row(n, entry));
    }
    return rows;
  }
}
