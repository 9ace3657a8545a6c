import { hash } from 'node:crypto';
import { numberText } from '../contract/number-text.ts';

/** Enough that two documents never share a hash by chance: 132 bits. */
const HASH_LENGTH = 22;

/** The longest id, in UTF-16 units: PostgreSQL's indexes hold 2,700 bytes. */
const LONGEST_ID = 800;

/** The longest part of the reason why an item is no JSON, in UTF-16 units. */
const LONGEST_REASON = 200;

/** Stands before an integer id, and before a text that begins with it. */
const MARK = '#';

/** A record of a page that the copy can keep, by the id that the copy knows it by. */
interface PageItem {
  id: string;
  text: string;
  hash: string;
}

/** Why the copy cannot keep an item. */
interface Rejection {
  /** A sentence about the item, for an administrator. */
  reason: string;
  /** Ids in the item: the copy keeps the older forms of these records. */
  ids?: string[];
  /** It may be any record of the copy: its id cannot be read. */
  isUnreadable?: boolean;
}

/** An item of a page that the copy cannot keep. */
export interface RejectedItem extends Rejection {
  text: string;
  hash: string;
}

/** The items of a page: records by their ids, in their order, and what the copy cannot keep. */
export interface ReadPage {
  items: Map<string, PageItem>;
  rejected: RejectedItem[];
}

/** Reads the items of a page, from their texts. Of a record that is there twice, the last one counts. */
export function readItems(texts: readonly string[]): ReadPage {
  const items = new Map<string, PageItem>();
  const rejected: RejectedItem[] = [];
  for (const [place, text] of texts.entries()) {
    const item = { text, hash: hash('sha256', text, 'base64url').slice(0, HASH_LENGTH) };
    const id = readItem(text, place);
    if (typeof id === 'string') items.set(id, { id, ...item });
    else rejected.push({ ...item, ...id });
  }
  return { items, rejected };
}

/** @param place on its page, from 0 */
function readItem(text: string, place: number): string | Rejection {
  try {
    return readId(JSON.parse(text), text);
  } catch (error) {
    // The message says where: "Bad control character in string literal in JSON at position 24".
    const why = (error as Error).message.slice(0, LONGEST_REASON).toWellFormed().replaceAll('\0', '\ufffd');
    const reason = `It is no JSON, as record ${place + 1} of its page: ${why}`;
    return { reason, ...idsOfBroken(text) };
  }
}

/** Every member with the name id, at any depth: unbalanced quotes may have merged two records into one item. */
const IDS = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)?/g;

/** The ids in an item that is no JSON. Unless there is exactly one, nobody knows which record the item is. */
function idsOfBroken(text: string): Pick<Rejection, 'ids' | 'isUnreadable'> {
  const members = [...text.matchAll(IDS)];
  const ids = members.flatMap(([, json]) => {
    try {
      const id = json === undefined ? undefined : readId({ id: JSON.parse(json) }, `{"id":${json}}`);
      return typeof id === 'string' ? [id] : [];
    } catch {
      return [];
    }
  });
  return { ids, isUnreadable: ids.length !== 1 || members.length !== 1 };
}

/**
 * An id is a text or an integer: 7 and "7" name different records. The copy keeps a text as it is, and an integer as `#`
 * and its digits. A text that begins with `#` gets another `#`.
 */
function readId(item: unknown, text: string): string | Rejection {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return unreadable('It is no object.');
  if (!Object.hasOwn(item, 'id')) return unreadable('It has no id.');
  const { id } = item as { id?: unknown };
  if (typeof id === 'number') {
    const digits = Number.isSafeInteger(id) ? String(id) : (numberText(text, id) ?? '');
    if (!/^-?\d+$/.test(digits)) return unreadable('Its id is a number, but no integer.');
    if (digits.length > LONGEST_ID) return { reason: `Its id is longer than ${LONGEST_ID} digits.` };
    return MARK + digits;
  }
  if (typeof id !== 'string') return unreadable('Its id is neither a text nor a number.');
  if (id === '') return unreadable('Its id is empty.');
  if (id.length > LONGEST_ID) return { reason: `Its id is longer than ${LONGEST_ID} characters.` };
  // The database would store two such ids as the same text.
  if (!id.isWellFormed()) return { reason: 'Its id is no Unicode text: it holds half of a surrogate pair.' };
  // Bytes that are not UTF-8 are read as U+FFFD: two ids with it may have been different.
  if (id.includes('\ufffd')) return { reason: 'Its id is no text in UTF-8.' };
  if (id.includes('\0')) return { reason: 'Its id holds a NUL character.' };
  return id.startsWith(MARK) ? MARK + id : id;
}

function unreadable(reason: string): Rejection {
  return { reason, isUnreadable: true };
}

/** The id that the copy knows a record by, as the service wrote it in JSON: `"7"` or `7`. */
export function idJson(id: string): string {
  if (!id.startsWith(MARK)) return JSON.stringify(id);
  const unmarked = id.slice(MARK.length);
  return unmarked.startsWith(MARK) ? JSON.stringify(unmarked) : unmarked;
}

/** The same as a value. An integer that JavaScript cannot hold exactly stays JSON. */
export function recordId(id: string): string | number {
  const json: unknown = JSON.parse(idJson(id));
  return typeof json === 'string' || Number.isSafeInteger(json) ? (json as string | number) : idJson(id);
}

/** A document on a line of its own. JSON allows raw line breaks and tabs between its tokens alone. */
export function oneLine(document: string): string {
  return document.replace(/[\r\n\t]/g, ' ');
}

/** The ids that a person may mean by a typed one: a text, an integer, or an id as the app shows it. */
export function idsOfTyped(typed: string): string[] {
  return [
    typed.startsWith(MARK) ? MARK + typed : typed,
    ...(/^-?\d+$/.test(typed) ? [MARK + typed] : []),
    typed,
  ];
}
