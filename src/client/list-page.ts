import { ServiceError } from './errors.ts';

/** A page of a list (Pagination): its text as it came, and what we read out of it. */
export interface ListPage {
  body: string;
  /** The items, as JSON.parse reads them. */
  results: unknown[];
  /** Address of the next page; null, and only null, is the end. */
  next: string | null;
}

/**
 * Reads a page.
 *
 * @throws ServiceError to wait on, when the body is no such page
 */
export function readListPage(body: string): ListPage {
  return { body, ...checkListPage(parse(body)) };
}

/**
 * Takes what counts out of a page. A page without a `_pagination.next` is refused rather than taken for the last one:
 * the records behind it would be marked as deleted.
 *
 * @param page its JSON, parsed
 * @throws ServiceError to wait on, when it is no such page
 */
export function checkListPage(page: unknown): Pick<ListPage, 'results' | 'next'> {
  const { _results: results, _pagination: pagination } = fieldsOf(page);
  const { next } = fieldsOf(pagination);
  if (!Array.isArray(results)) throw malformed('there is no list of results in it');
  if (next !== null && (typeof next !== 'string' || next === ''))
    throw malformed('it does not say what comes next');
  return { results, next };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw malformed('it is not JSON', error);
  }
}

function malformed(what: string, cause?: unknown): ServiceError {
  return new ServiceError('wait', `The service sent a page that cannot be read: ${what}.`, { cause });
}
