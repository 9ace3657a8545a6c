import { ServiceError } from './errors.ts';
import { itemTexts } from './item-texts.ts';

/** A page of a list (Pagination). */
export interface ListPage {
  /** The items, as JSON.parse reads them. */
  results: unknown[];
  /** The text of each item as the service sent it, but for white space between tokens: it is one line. */
  texts: string[];
  /** Address of the next page; null, and only null, is the end. */
  next: string | null;
}

/**
 * Reads a page.
 *
 * @throws ServiceError to wait on, when the body is no such page
 */
export function readListPage(body: string): ListPage {
  let texts: string[] | undefined;
  return {
    ...checkListPage(parse(body)),
    // Not before they are asked for: the next request goes first.
    get texts() {
      texts ??= itemTexts(body);
      return texts;
    },
  };
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
