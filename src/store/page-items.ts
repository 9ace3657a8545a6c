import { numberText } from '../contract/number-text.ts';
import { documentHash } from './document-hash.ts';

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
export interface PageItem {
  /** Its place on the page. */
  place: number;
  /** What the copy knows it by. */
  id: string;
  text: Buffer;
  hash: string;
}

/** An item of a page that the copy cannot keep. */
export interface UnusableItem {
  text: string;
  /** A sentence about the item, for an administrator. */
  reason: string;
}

/** Longer ids are no ids, in UTF-16 units: each stands in an index. */
const LONGEST_ID = 1_000;

/** A number of fewer bytes that a document begins with is found without reading the document. */
const LONGEST_BEGINNING = 64;

const EMPTY = Buffer.alloc(0);

/** Stands before an id that is a number, and before one that is a text and begins with it. */
const MARK = '#';

/** The records of a page by their ids; of a record that is there twice, the last one. */
export function readItems({ items: found, texts, refuseId }: PageTexts): {
  items: Map<string, PageItem>;
  unusable: UnusableItem[];
} {
  const items = new Map<string, PageItem>();
  const unusable: UnusableItem[] = [];
  for (let place = 0; place < found.length; place++) {
    const text = texts[place] ?? EMPTY;
    let id = readId(found[place], text);
    const refusal = typeof id === 'string' ? refuseId?.(id) : undefined;
    if (refusal !== undefined) id = { reason: refusal };
    if (typeof id === 'string') items.set(id, { place, id, text, hash: documentHash(text) });
    else unusable.push({ text: text.toString(), reason: id.reason });
  }
  return { items, unusable };
}

/**
 * An id is a text or an integer, and 7 is another one than "7": the copy keeps a text as it is, an integer as `#` and
 * its digits, which may be more than a number has room for. A text that begins with `#` gets another one before it.
 */
function readId(item: unknown, text: Buffer): string | { reason: string } {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return { reason: 'It is no object.' };
  if (!Object.hasOwn(item, 'id')) return { reason: 'It has no id.' };
  const { id } = item as { id?: unknown };
  if (typeof id === 'number') return readNumber(text, id);
  if (typeof id !== 'string') return { reason: 'Its id is neither a text nor a number.' };
  if (id === '') return { reason: 'Its id is empty.' };
  if (id.length > LONGEST_ID) return { reason: `Its id is longer than ${LONGEST_ID} characters.` };
  // The database keeps Unicode alone: two that are none would become the same one.
  if (!id.isWellFormed())
    return { reason: 'Its id is no Unicode text: half of a pair of surrogates is in it.' };
  return id.startsWith(MARK) ? MARK + id : id;
}

/** The text of a document that says no more than an id, as the copy keeps it. */
export function idDocument(id: string): string {
  if (!id.startsWith(MARK)) return JSON.stringify({ id });
  const unmarked = id.slice(MARK.length);
  return unmarked.startsWith(MARK) ? JSON.stringify({ id: unmarked }) : `{"id":${unmarked}}`;
}

function readNumber(text: Buffer, id: number): string | { reason: string } {
  const beginning = text.toString('latin1', 0, LONGEST_BEGINNING);
  const first = /^\{"id":(-?\d+)[,}]/.exec(beginning)?.[1];
  // Of several members of that name the last one counts.
  const digits = first !== undefined && Number(first) === id ? first : numberText(text.toString(), id);
  if (digits === undefined || !/^-?\d+$/.test(digits))
    return { reason: 'Its id is a number, but no integer.' };
  return digits.length > LONGEST_ID
    ? { reason: `Its id is longer than ${LONGEST_ID} digits.` }
    : MARK + digits;
}
