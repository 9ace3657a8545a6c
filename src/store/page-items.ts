import { hash } from 'node:crypto';
import { numberText } from '../contract/number-text.ts';

/** Enough that two documents never share one by chance: 132 bits. */
const HASH_LENGTH = 22;

/** What a document is compared by. */
function documentHash(text: string | Buffer): string {
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
}

/** A page as it came from the service. */
export interface PageTexts {
  /** The items; of an object, its `id` alone counts. */
  items: readonly unknown[];
  /** The text of each of them in UTF-8, as the service sent it, on one line. */
  texts: readonly Buffer[];
  /** Tells why an id can be none by what the store does not know of, in a sentence; asked for one after the other. */
  refuseId?: (id: string) => string | undefined;
}

/** A record of a page that the copy can keep. */
interface PageItem {
  /** What the copy knows it by. */
  id: string;
  text: Buffer;
  hash: string;
}

/** An item of a page that the copy cannot keep. */
export interface RejectedItem {
  text: string;
  hash: string;
  /** A sentence about the item, for an administrator. */
  reason: string;
  /** It may be a record that the copy has: its id cannot be read. */
  isUnreadable: boolean;
}

/** Longer ids are no ids, in UTF-16 units: PostgreSQL's indexes hold 2,700 bytes. */
const LONGEST_ID = 800;

/** A number of fewer bytes that a document begins with is found without reading the document. */
const LONGEST_BEGINNING = 64;

const EMPTY = Buffer.alloc(0);

/** Stands before an id that is a number, and before one that is a text and begins with it. */
const MARK = '#';

/** The records of a page by their ids; of a record that is there twice, the last one. */
export function readItems({ items: found, texts, refuseId }: PageTexts): {
  items: Map<string, PageItem>;
  rejected: RejectedItem[];
} {
  const items = new Map<string, PageItem>();
  const rejected: RejectedItem[] = [];
  for (let place = 0; place < found.length; place++) {
    const text = texts[place] ?? EMPTY;
    let id = readId(found[place], text);
    const refusal = typeof id === 'string' ? refuseId?.(id) : undefined;
    if (refusal !== undefined) id = { reason: refusal };
    const hash = documentHash(text);
    if (typeof id === 'string') items.set(id, { id, text, hash });
    else {
      const { reason, isUnreadable = false } = id;
      rejected.push({ text: text.toString(), hash, reason, isUnreadable });
    }
  }
  return { items, rejected };
}

/**
 * An id is a text or an integer, and 7 is another one than "7": the copy keeps a text as it is, an integer as `#` and
 * its digits, which may be more than a number has room for. A text that begins with `#` gets another one before it.
 */
function readId(item: unknown, text: Buffer): string | Refusal {
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

/** What the copy may know a record by whose id somebody typed: as a text, as an integer, or as pages show it. */
export function idsOfTyped(typed: string): string[] {
  return [
    typed.startsWith(MARK) ? MARK + typed : typed,
    ...(/^-?\d+$/.test(typed) ? [MARK + typed] : []),
    typed,
  ];
}

interface Refusal {
  reason: string;
  isUnreadable?: boolean;
}

function unreadable(reason: string): Refusal {
  return { reason, isUnreadable: true };
}

function readNumber(text: Buffer, id: number): string | Refusal {
  const beginning = text.toString('latin1', 0, LONGEST_BEGINNING);
  const first = /^\{"id":(-?\d+)[,}]/.exec(beginning)?.[1];
  // Of several members of that name the last one counts.
  const digits = first !== undefined && Number(first) === id ? first : numberText(text.toString(), id);
  if (digits === undefined || !/^-?\d+$/.test(digits))
    return unreadable('Its id is a number, but no integer.');
  return digits.length > LONGEST_ID
    ? { reason: `Its id is longer than ${LONGEST_ID} digits.` }
    : MARK + digits;
}
