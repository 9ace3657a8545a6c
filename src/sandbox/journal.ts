import type { JournalRow } from './types.ts';

/** One request, as it is written down: `search` is the raw query with its question mark, or empty. */
type JournalEntry = Omit<JournalRow, 'n' | 'query'> & { search: string };

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

/** The newest 100,000 requests to the service's API and OAuth routes, without secrets. */
export class Journal {
  readonly #rows: JournalRow[] = [];
  #count = 0;

  /** How many requests there were; also the number of the newest. */
  get count(): number {
    return this.#count;
  }

  add({ search, ...entry }: JournalEntry): void {
    const row = {
      n: this.#count + 1,
      ...entry,
      path: hide(entry.path),
      query: search === '' ? {} : shownQuery(search),
      ignored: entry.ignored.map((name) => hide(name)),
      duration_ms: Math.round(entry.duration_ms * 10) / 10,
    };
    this.#rows[this.#count % CAPACITY] = row;
    this.#count += 1;
  }

  /** The rows with a number above `after`, oldest first; numbers start with 1. */
  after(after: number): JournalRow[] {
    const first = Math.max(after, this.#count - CAPACITY, 0);
    const rows = Array.from(
      { length: this.#count - first },
      (_, place) => this.#rows[(first + place) % CAPACITY],
    );
    return rows.filter((row) => row !== undefined);
  }
}
