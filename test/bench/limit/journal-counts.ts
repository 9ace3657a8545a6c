import type { JournalRow } from '../../../src/sandbox/types.ts';

/** A row of the journal, as far as it is counted. */
export type Counted = Pick<
  JournalRow,
  'at' | 'path' | 'status' | 'company_id' | 'application' | 'duration_ms'
>;

/** One window of a company's limit, as the service counted it; times in ms since 1970 on the service's clock. */
export interface Window {
  start: number;
  /** Requests that counted, whoever sent them. */
  counted: number;
  /** Requests that were refused while it was open. */
  refused: number;
}

/** A stretch of time, from its start to before its end. */
export interface Span {
  from: number;
  to: number;
}

/** 200 and everything else that took effect counts; what was refused with 401 or 429 does not (Limits). */
export function counts({ status }: Pick<Counted, 'status'>): boolean {
  return status !== 429 && status !== 401;
}

/**
 * The windows of a company's limit: each is fixed and starts with its first request that counts.
 *
 * @param rows of this company alone that count against one limit, oldest first
 */
export function windowsOf(rows: readonly Counted[], windowMs: number): Window[] {
  const windows: Window[] = [];
  for (const row of rows) {
    let window = windows.at(-1);
    if (window === undefined || row.at >= window.start + windowMs) {
      if (!counts(row)) continue;
      window = { start: row.at, counted: 0, refused: 0 };
      windows.push(window);
    }
    if (counts(row)) window.counted += 1;
    else if (row.status === 429) window.refused += 1;
  }
  return windows;
}

/** The rows of a company at the API, by application; OAuth requests count against no limit. */
export function requestsOf(rows: readonly Counted[], companyId: string): Counted[] {
  return rows.filter(({ company_id, path }) => company_id === companyId && !path.startsWith('/oauth/'));
}

/** Rows that arrived in the span. */
export function within<Row extends Pick<Counted, 'at'>>(rows: readonly Row[], { from, to }: Span): Row[] {
  return rows.filter(({ at }) => at >= from && at < to);
}

/** What limit and latency permit in complete windows: the limit less what others took of it, or what the bare loop got. */
export function idealPages(given: {
  limit: number;
  windows: number;
  /** Requests of others against the same limit in the same time. */
  others: number;
  /** Pages of the bare loop without a limit in the same time. */
  loopPages: number;
}): number {
  return Math.min(given.limit * given.windows - given.others, given.loopPages);
}

/**
 * When so many pages are there at the earliest, in ms after the start: every window's requests at its beginning, as
 * fast as the bare loop, and on with the next window as soon as it may be.
 */
export function idealTimeMs(
  pages: number,
  given: {
    /** Requests of a window, and of the rest of the first one, in which the start lies. */
    limit: number;
    firstLeft: number;
    firstEndsInMs: number;
    windowMs: number;
    /** Pages a second of the bare loop. */
    perSecond: number;
  },
): number {
  const msPerPage = 1_000 / given.perSecond;
  let left = pages;
  let startMs = 0;
  let allowed = given.firstLeft;
  let lengthMs = given.firstEndsInMs;
  for (;;) {
    const most = Math.min(allowed, Math.floor(lengthMs / msPerPage));
    if (left <= most) return startMs + left * msPerPage;
    left -= most;
    startMs += lengthMs;
    allowed = given.limit;
    lengthMs = given.windowMs;
  }
}

/** When a contender had so many pages, in ms after `since`; undefined when it never had. */
export function timeOfPage(rows: readonly Counted[], pages: number, since: number): number | undefined {
  const ends = rows
    .filter(({ status }) => status === 200)
    .map(({ at, duration_ms }) => at + duration_ms - since)
    .toSorted((one, other) => one - other);
  return ends[pages - 1];
}
