import { isUtf8 } from 'node:buffer';
import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import type { ServiceError } from './errors.ts';
import { outlineOf } from './page-outline.ts';
import { readJson, unreadable } from './read-json.ts';

/** A hundred times what a page may hold (Limits, "Pagination sizes"): a service that sends more sends anything. */
const MOST_RESULTS = 100 * PAGE_LIMIT_MAX;

const BEYOND_ASCII = /[^\0-\x7f]/;

/** A page of a list (Pagination), of which no more is read yet than where it leads. */
export interface ListPage {
  /** Address of the next page; null, and only null, is the end. */
  next: string | null;
  /** How much of memory it keeps until it is read, in bytes. */
  keptBytes: number;
  /** Whether it came in UTF-8. What is none of it is read as U+FFFD: two ids with that may have been different. */
  isUtf8: boolean;
  /** @throws ServiceError to wait on, when the body is no such page after all */
  read(): PageItems;
}

/** The items of a page. */
export interface PageItems {
  /**
   * The items as far as it takes to know them: of an object, its `id` alone is as JSON.parse reads it. Other texts are
   * not, beyond ASCII.
   */
  items: readonly unknown[];
  /** The text of each item in UTF-8, as the service sent it, but for white space between tokens: it is one line. */
  texts: readonly Buffer[];
}

/**
 * Finds out where a page leads. Parsing comes later, by {@link ListPage.read}: the next request goes first, and what is
 * parsed is written at once. What is parsed and waits in memory costs twice, as it outlives one collection of garbage
 * after the other.
 *
 * @param body as it came
 * @throws ServiceError to wait on, when that is no page
 */
export function readListPage(body: Buffer): ListPage {
  const isText = isUtf8(body);
  const bytes = isText ? body : Buffer.from(body.toString());
  const outline = outlineOf(bytes, MOST_RESULTS);
  // Where that is undefined: it is no JSON, or at its top no object.
  if (outline === undefined) readJson(bytes.toString(), 'a page');
  checkError(outline?.hasError === true);
  checkCount(outline?.count);
  const { next } = fieldsOf(outline?.pagination && readJson(outline.pagination, 'a page'));
  checkNext(next);
  const keptBytes = isText ? body.length : body.length + bytes.length;
  return { next, keptBytes, isUtf8: isText, read: () => readItems(bytes, outline?.texts() ?? []) };
}

/**
 * Each byte is taken for a letter: structure and ASCII are the same then, and it takes two thirds of the time and half of
 * the memory. What was found of the page before, in the bytes, is there when JSON.parse takes all of it.
 */
function readItems(bytes: Buffer, texts: readonly Buffer[]): PageItems {
  const page = readJson(bytes.toString('latin1'), 'a page') as { _results: unknown[] };
  const items = page._results.map((item, place) => {
    const { id } = fieldsOf(item);
    return typeof id === 'string' && BEYOND_ASCII.test(id) ? JSON.parse(String(texts[place])) : item;
  });
  return { items, texts };
}

/**
 * Takes what counts out of a page. A page without a `_pagination.next` is refused rather than taken for the last one:
 * the records behind it would be marked as deleted.
 *
 * @param page its JSON, parsed
 * @throws ServiceError to wait on, when it is no such page
 */
export function checkListPage(page: unknown): void {
  const { _results: results, _pagination: pagination, _error: error } = fieldsOf(page);
  const { next } = fieldsOf(pagination);
  checkError(error !== undefined && error !== null);
  checkCount(Array.isArray(results) ? results.length : undefined);
  checkNext(next);
}

/** What says itself that it is an error (Common response members) is no page, whatever its status. */
function checkError(hasError: boolean): void {
  if (hasError) throw malformed('it says that there was an error');
}

function checkCount(results: number | undefined): void {
  if (results === undefined) throw malformed('there is no list of results in it');
  if (results > MOST_RESULTS) throw malformed(`there are more than ${MOST_RESULTS} results in it`);
}

function checkNext(next: unknown): asserts next is string | null {
  if (next !== null && (typeof next !== 'string' || next === ''))
    throw malformed('it does not say what comes next');
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function malformed(why: string): ServiceError {
  return unreadable('a page', why);
}
