import { formatNumber } from './format.ts';

export const RECORDS_PER_PAGE = 50;
const MAX_SEARCH_LENGTH = 200;
/** Keeps the offset a safe integer. */
const MAX_PAGE = 1_000_000;

interface ListQuery {
  search: string;
  /** From 1. */
  page: number;
  /** Of the operator's page. */
  filter?: string | undefined;
}

/** Reads `q` and `page`, and ignores nonsense. */
export function readListQuery(query: Record<string, unknown>): ListQuery {
  const search = typeof query.q === 'string' ? query.q.trim().slice(0, MAX_SEARCH_LENGTH) : '';
  const page = typeof query.page === 'string' && /^\d{1,7}$/.test(query.page) ? Number(query.page) : 1;
  return { search, page: Math.min(Math.max(page, 1), MAX_PAGE) };
}

/**
 * The address of a record. Browsers resolve `.` and `..` in a path, and proxies decode `%2F`: unusual ids go into the query.
 */
export function recordAddress(base: string, id: string): string {
  const isPlain = /^(?!\.\.?$)[\w.~-]+$/.test(id);
  return isPlain ? `${base}/${id}` : `${base}?record=${encodeURIComponent(id)}`;
}

/** The address of a page of a list. */
export function listAddress(base: string, { search, page, filter }: ListQuery): string {
  const parameters = new URLSearchParams(filter ? { filter } : {});
  if (search) parameters.set('q', search);
  if (page > 1) parameters.set('page', String(page));
  const query = parameters.toString();
  return query ? `${base}?${query}` : base;
}

/** The last page of a list, at least 1. */
export function lastPage(total: number, perPage: number): number {
  return Math.max(1, Math.ceil(total / perPage));
}

/** Links to other pages of a list. */
export function pageLinks(base: string, query: ListQuery, last: number) {
  const { page } = query;
  const to = (number: number) => listAddress(base, { ...query, page: number });
  return {
    text: `Page ${formatNumber(page)} of ${formatNumber(last)}`,
    first: page > 2 ? to(1) : null,
    previous: page > 1 ? to(page - 1) : null,
    next: page < last ? to(page + 1) : null,
    last: page < last - 1 ? to(last) : null,
  };
}
