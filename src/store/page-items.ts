import { documentHash } from './document-hash.ts';

/** A page as it came from the service. */
export interface PageTexts {
  /** The items, as JSON.parse reads them. */
  results: readonly unknown[];
  /** The text of each of them, as the service sent it, on one line. */
  texts: readonly string[];
}

/** A record of a page that the copy can keep. */
export interface PageItem {
  /** Its place on the page. */
  place: number;
  id: string;
  text: string;
  hash: string;
}

/**
 * The records of a page by their ids; of a record that is there twice, the last one.
 *
 * @returns skipped: how many have no usable id
 */
export function readItems({ results, texts }: PageTexts): { items: Map<string, PageItem>; skipped: number } {
  const items = new Map<string, PageItem>();
  let skipped = 0;
  for (let place = 0; place < results.length; place++) {
    const text = texts[place] ?? '';
    const id = usableId(results[place], text);
    if (id === undefined) skipped++;
    else items.set(id, { place, id, text, hash: documentHash(text) });
  }
  return { items, skipped };
}

/**
 * A usable id is a non-empty string or an integer; the copy keeps it as text, an integer by its digits, which may be
 * more than a number has room for.
 */
function usableId(item: unknown, text: string): string | undefined {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return undefined;
  const { id } = item as { id?: unknown };
  if (typeof id === 'string') return id === '' ? undefined : id.toWellFormed();
  if (typeof id !== 'number') return undefined;
  const digits = /^\{"id":(-?\d+)[,}]/.exec(text)?.[1] ?? numberText(text, id);
  return digits !== undefined && /^-?\d+$/.test(digits) ? digits : undefined;
}

/** The text of the number that is the document's own `id`, wherever it stands in it. */
function numberText(document: string, id: number): string | undefined {
  const texts = new Map<unknown, string | undefined>();
  try {
    const root = JSON.parse(document, function (this: unknown, name, value, context?: { source?: string }) {
      if (name === 'id') texts.set(this, context?.source);
      return value;
    });
    return texts.get(root);
  } catch {
    // With a function it calls itself at every level, and cannot get to the ground of any document.
    return Number.isSafeInteger(id) ? String(id) : undefined;
  }
}
