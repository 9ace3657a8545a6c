import { hash } from 'node:crypto';
import { numberText } from '../contract/number-text.ts';

/** Enough that two documents never share one by chance: 132 bits. */
const HASH_LENGTH = 22;

/** What a document is compared by. */
function documentHash(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
}

/** A page as it came from the service. */
export interface PageTexts {
  /** The text of each item, as the service sent it. It may be no JSON. */
  texts: readonly string[];
}

/** A record of a page that the copy can keep. */
interface PageItem {
  /** What the copy knows it by. */
  id: string;
  text: string;
  hash: string;
}

/** An item of a page that the copy cannot keep. */
export interface RejectedItem {
  text: string;
  hash: string;
  /** A sentence about the item, for an administrator. */
  reason: string;
  /** Ids that stand in it: the copy keeps its older forms of these records. */
  ids?: string[];
  /** It may be a record that the copy has: its id cannot be read. */
  isUnreadable?: boolean;
}

/** Longer ids are no ids, in UTF-16 units: PostgreSQL's indexes hold 2,700 bytes. */
const LONGEST_ID = 800;

/** How much of an item is looked at for the id that it begins with, in UTF-16 units. */
const LONGEST_BEGINNING = 2 * LONGEST_ID;

/** An id at the beginning of an item. */
const FIRST_ID = /^\{\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/;

/** Longest part of the reason why an item is no JSON, in UTF-16 units. */
const LONGEST_REASON = 200;

/** Stands before an id that is a number, and before one that is a text and begins with it. */
const MARK = '#';

/** The records of a page by their ids; of a record that is there twice, the last one. */
export function readItems({ texts }: PageTexts): { items: Map<string, PageItem>; rejected: RejectedItem[] } {
  const items = new Map<string, PageItem>();
  const rejected: RejectedItem[] = [];
  for (const [place, text] of texts.entries()) {
    const hash = documentHash(text);
    const id = readItem(text, place);
    if (typeof id === 'string') items.set(id, { id, text, hash });
    else rejected.push({ text, hash, ...id });
  }
  return { items, rejected };
}

type Refusal = Pick<RejectedItem, 'reason' | 'ids' | 'isUnreadable'>;

function unreadable(reason: string): Refusal {
  return { reason, isUnreadable: true };
}

/** @param place on its page, from 0 */
function readItem(text: string, place: number): string | Refusal {
  try {
    return readId(JSON.parse(text), text);
  } catch (error) {
    // Its message says where: "Bad control character in string literal in JSON at position 24".
    const why = (error as Error).message.slice(0, LONGEST_REASON).toWellFormed().replaceAll('\0', '\ufffd');
    const reason = `It is no JSON, as record ${place + 1} of its page: ${why}`;
    return { reason, ...idsOfBroken(text) };
  }
}

/** Every member that is called id, at any depth: unbalanced quotes may have merged two records into one item. */
const IDS = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)?/g;

/** The ids in an item that is no JSON; unless there is one alone, the item may hold a record that nobody can tell. */
function idsOfBroken(text: string): Pick<Refusal, 'ids' | 'isUnreadable'> {
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
 * An id is a text or an integer, and 7 is another one than "7": the copy keeps a text as it is, an integer as `#` and
 * its digits, which may be more than a number has room for. A text that begins with `#` gets another one before it.
 */
function readId(item: unknown, text: string): string | Refusal {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return unreadable('It is no object.');
  if (!Object.hasOwn(item, 'id')) return unreadable('It has no id.');
  const { id } = item as { id?: unknown };
  if (typeof id === 'number') return readNumber(text, id);
  if (typeof id !== 'string') return unreadable('Its id is neither a text nor a number.');
  if (id === '') return unreadable('Its id is empty.');
  if (id.length > LONGEST_ID) return { reason: `Its id is longer than ${LONGEST_ID} characters.` };
  // The database keeps Unicode alone: two that are none would become the same one.
  if (!id.isWellFormed())
    return { reason: 'Its id is no Unicode text: half of a pair of surrogates is in it.' };
  // Bytes that are not UTF-8 are read as U+FFFD: two ids with it may have been different.
  if (id.includes('\ufffd')) return { reason: 'Its id is no text in UTF-8.' };
  if (id.includes('\0')) return { reason: 'Its id holds a NUL character.' };
  return id.startsWith(MARK) ? MARK + id : id;
}

/** The id that the copy knows a record by, as the service wrote it in JSON: `"7"` or `7`. */
export function idJson(id: string): string {
  if (!id.startsWith(MARK)) return JSON.stringify(id);
  const unmarked = id.slice(MARK.length);
  return unmarked.startsWith(MARK) ? JSON.stringify(unmarked) : unmarked;
}

/** The same as a value; one that JavaScript cannot hold exactly, as its JSON. */
export function recordId(id: string): string | number {
  const json: unknown = JSON.parse(idJson(id));
  return typeof json === 'string' || Number.isSafeInteger(json) ? (json as string | number) : idJson(id);
}

/** A document on a line of its own: raw line breaks and tabs stand between its tokens alone. */
export function oneLine(document: string): string {
  return document.replace(/[\r\n\t]/g, ' ');
}

/** What the copy may know a record by whose id somebody typed: as a text, as an integer, or as pages show it. */
export function idsOfTyped(typed: string): string[] {
  return [
    typed.startsWith(MARK) ? MARK + typed : typed,
    ...(/^-?\d+$/.test(typed) ? [MARK + typed] : []),
    typed,
  ];
}

function readNumber(text: string, id: number): string | Refusal {
  const first = FIRST_ID.exec(text.slice(0, LONGEST_BEGINNING))?.[1];
  // Of several members of that name the last one counts.
  const digits = first !== undefined && Number(first) === id ? first : numberText(text, id);
  if (digits === undefined || !/^-?\d+$/.test(digits))
    return unreadable('Its id is a number, but no integer.');
  return digits.length > LONGEST_ID
    ? { reason: `Its id is longer than ${LONGEST_ID} digits.` }
    : MARK + digits;
}
