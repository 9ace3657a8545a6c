import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import { fieldsOf, type ServiceError, unreadable } from './errors.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A text up to this length is parsed at once, in characters: a page of 100 records has about 70,000. */
const HARMLESS_LENGTH = 1024 * 1024;

/** The most values in a text. All that fit into 32 MB would take a gigabyte of memory and ten seconds. */
const MOST_VALUES = 500_000;

/** A hundred times what a page may hold (Limits, "Pagination sizes"). */
const MOST_RESULTS = 100 * PAGE_LIMIT_MAX;

/** A page of a list (Pagination). */
export interface ListPage {
  /** The next page's address; only null means the end. */
  next: string | null;
  /** The text of each item to the byte: large integers, `1.0`, escapes and blanks. It may be no JSON. */
  texts: string[];
}

/**
 * Parses JSON of the service, in bounded time and memory.
 *
 * @param what the text is, for the message: "a page"
 * @throws ServiceError `bad_answer` if it is no JSON or too large
 */
export function readJson(text: string, what: string): unknown {
  checkValues(text, what);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unreadable(what, text === '' ? 'it is empty' : 'it is not JSON', error);
  }
}

/**
 * Reads the next page's address and cuts out the items. The caller parses them one by one, so an item that is no JSON
 * spoils no other.
 *
 * @throws ServiceError `bad_answer` if the body is no page
 */
export function readListPage(body: string): ListPage {
  checkValues(body, 'a page');
  const { texts, rest } = cutResults(body);
  const next = checkListPage(readJson(rest, 'a page'));
  if (texts === undefined) throw malformed('there is no list of results in it');
  if (texts.length > MOST_RESULTS) throw malformed(`there are more than ${MOST_RESULTS} results in it`);
  return { next, texts };
}

/**
 * Checks a parsed page. A page without `_pagination.next` is not the last one: the sync would mark the records behind it
 * as deleted.
 *
 * @returns the next page's address
 * @throws ServiceError `bad_answer` if it is no page
 */
export function checkListPage(page: unknown): string | null {
  const { _results: results, _pagination: pagination, _error: error } = fieldsOf(page);
  // Some services send errors with status 200.
  if (error !== undefined && error !== null) throw malformed('it says that there was an error');
  if (!Array.isArray(results)) throw malformed('there is no list of results in it');
  const { next } = fieldsOf(pagination);
  if (next !== null && (typeof next !== 'string' || next === ''))
    throw malformed('it does not say what comes next');
  return next;
}

function malformed(why: string): ServiceError {
  return unreadable('a page', why);
}

const RESULTS = /\s*"_results"\s*:\s*\[/y;

/** Cuts the items of the top-level `_results` out of a page. Like JSON.parse, it takes the last member of that name. */
function cutResults(text: string): { texts: string[] | undefined; rest: string } {
  let texts: string[] | undefined;
  let rest = '';
  let copied = 0;
  for (let at = text.indexOf('{') + 1; at < text.length; at++) {
    RESULTS.lastIndex = at;
    if (RESULTS.test(text)) {
      const from = RESULTS.lastIndex;
      const items = cutItems(text, from);
      texts = items.texts;
      rest += text.slice(copied, from);
      copied = items.end;
      at = items.end + 1;
    }
    at = valueEnd(text, at);
  }
  return { texts, rest: rest + text.slice(copied) };
}

function cutItems(text: string, from: number): { texts: string[]; end: number } {
  const texts: string[] = [];
  for (let at = from; ; ) {
    const end = valueEnd(text, at);
    const item = text.slice(at, end).trim();
    const isLast = text.charCodeAt(end) !== COMMA;
    if (!isLast || item !== '' || texts.length > 0) texts.push(item);
    if (isLast) return { texts, end };
    at = end + 1;
  }
}

/** The position of the comma or bracket that ends the value, or the member, at `from`. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at);
    else if (code === OPEN_OBJECT || code === OPEN_LIST) depth++;
    else if (code === COMMA && depth === 0) break;
    else if ((code === CLOSE_OBJECT || code === CLOSE_LIST) && depth-- === 0) break;
  }
  return at;
}

/** The position of the closing quote: the next one behind an even number of backslashes. */
function stringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/** Counts the values of a text without making them. */
function checkValues(text: string, what: string): void {
  if (text.length <= HARMLESS_LENGTH) return;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at);
    else if (code === COMMA || code === OPEN_OBJECT || code === OPEN_LIST) values++;
  }
  if (values > MOST_VALUES) throw unreadable(what, `it is too large: it has more than ${MOST_VALUES} values`);
}
