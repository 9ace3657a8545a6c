const NUMBER = new Intl.NumberFormat('en-GB');
const LIST = new Intl.ListFormat('en-GB');
const INSTANT = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
});

const SHORT = new Intl.NumberFormat('en-GB', { notation: 'compact' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A whole number with separators: `1,000,000`. */
export function formatNumber(value: number): string {
  return NUMBER.format(value);
}

/** A number for little space: `1K`, `2.5M`. */
export function formatShort(value: number): string {
  return SHORT.format(value);
}

/** A date without its year: `10 Jun`. */
export function formatDay(iso: string): string {
  return DAY.format(Date.parse(iso));
}

/** A number with its noun: `1 page`, `2 pages`. */
export function formatCount(value: number, noun: string, plural = `${noun}s`): string {
  return `${formatNumber(value)} ${value === 1 ? noun : plural}`;
}

/** Milliseconds since 1970 of an ISO 8601 date; undefined for anything else. */
export function instantOf(iso: string | null | undefined): number | undefined {
  if (!iso) return undefined;
  const value = Date.parse(iso);
  return Number.isNaN(value) ? undefined : value;
}

/** A moment: `21 Nov 2025, 01:07 UTC`, or a dash. */
export function formatInstant(iso: string | null | undefined): string {
  const value = instantOf(iso);
  return value === undefined ? '–' : `${INSTANT.format(value)} UTC`;
}

/** A length of time in one or two units: `42 s`, `3 min 20 s`, `2 h 5 min`, `179 days`. */
export function formatDuration(ms: number): string {
  const left = Math.max(0, ms);
  if (left < MINUTE_MS) return `${Math.ceil(left / SECOND_MS)} s`;
  if (left < 10 * MINUTE_MS) {
    const seconds = Math.floor((left % MINUTE_MS) / SECOND_MS);
    return `${Math.floor(left / MINUTE_MS)} min${seconds ? ` ${seconds} s` : ''}`;
  }
  if (left < HOUR_MS) return `${Math.floor(left / MINUTE_MS)} min`;
  if (left < 2 * DAY_MS) {
    const minutes = Math.floor((left % HOUR_MS) / MINUTE_MS);
    return `${Math.floor(left / HOUR_MS)} h${minutes ? ` ${minutes} min` : ''}`;
  }
  return `${Math.floor(left / DAY_MS)} days`;
}

/** A coming moment, seen from `now`: `in 12 s`, `any moment`. */
export function formatAhead(iso: string | null | undefined, now: number): string {
  const value = instantOf(iso);
  if (value === undefined) return '';
  return value - now < SECOND_MS ? 'any moment' : `in ${formatDuration(value - now)}`;
}

/** A past moment, seen from `now`: `5 min ago`, `just now`. */
export function formatAgo(iso: string | null | undefined, now: number): string {
  const value = instantOf(iso);
  if (value === undefined) return '';
  return now - value < 5 * SECOND_MS ? 'just now' : `${formatDuration(now - value)} ago`;
}

/** Titles in the middle of a sentence: `contacts`, `contacts and conversations`, `tags, contacts and links`. */
export function listOf(titles: string[]): string {
  return LIST.format(titles.map((title) => title.toLowerCase()));
}

/** A text that may hold a moment. An open page counts down or up to it. */
export interface Sentence {
  before: string;
  moment: { at: string; mode: 'ahead' | 'ago'; text: string } | null;
  after: string;
}

/**
 * @param text with `{in}` in place of a coming moment, or `{ago}` in place of a past one
 * @param at the moment, ISO 8601; without it the mark is left out
 * @param now milliseconds since 1970
 */
export function sentence(text: string, at?: string | null, now = 0): Sentence {
  const [, before = text, mark, after = ''] = /^(.*?) ?\{(in|ago)\}(.*)$/s.exec(text) ?? [];
  if (mark === undefined || !at) return { before: before + after, moment: null, after: '' };
  const [mode, format] = mark === 'in' ? (['ahead', formatAhead] as const) : (['ago', formatAgo] as const);
  return { before: `${before} `, moment: { at, mode, text: format(at, now) }, after };
}
