import { isUtf8 } from 'node:buffer';
import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import type { ServiceError } from './errors.ts';
import { itemTexts } from './item-texts.ts';
import { readJson, unreadable } from './read-json.ts';

/** A hundred times what a page may hold (Limits, "Pagination sizes"): a service that sends more sends anything. */
const MOST_RESULTS = 100 * PAGE_LIMIT_MAX;

/** A page of a list (Pagination). */
export interface ListPage {
  /** The items, as JSON.parse reads them. */
  results: unknown[];
  /** The text of each item in UTF-8, as the service sent it, but for white space between tokens: it is one line. */
  texts: Buffer[];
  /** Address of the next page; null, and only null, is the end. */
  next: string | null;
  /** Whether an id of an item gives a secret of the app away; absent where none was in play. */
  isSecret?: (id: string) => boolean;
}

/**
 * Reads a page.
 *
 * @param bytes the same, as it came
 * @throws ServiceError to wait on, when the body is no such page
 */
export function readListPage(body: string, bytes: Buffer = Buffer.from(body)): ListPage {
  let texts: Buffer[] | undefined;
  return {
    ...checkListPage(readJson(body, 'a page')),
    // Not before they are asked for: the next request goes first.
    get texts() {
      texts ??= itemTexts(isUtf8(bytes) ? bytes : Buffer.from(body));
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
  if (results.length > MOST_RESULTS) throw malformed(`there are ${results.length} results in it`);
  if (next !== null && (typeof next !== 'string' || next === ''))
    throw malformed('it does not say what comes next');
  return { results, next };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function malformed(why: string): ServiceError {
  return unreadable('a page', why);
}
