import { createHash } from 'node:crypto';

/** Longer words are found by their first so many characters. */
const LONGEST_WORD = 64;

const PLAIN = /^\p{ASCII}*$/u;
const PLAIN_WORDS = /[a-z0-9]+/g;
// Scripts that are written without spaces, and pictures, are taken sign by sign.
const WORDS =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|\p{So}|(?:(?![\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}])[\p{L}\p{N}])+/gu;

/** The words of a text, without case and accents. */
function wordsOf(text: string): string[] {
  if (PLAIN.test(text)) return text.toLowerCase().match(PLAIN_WORDS) ?? [];
  // Lower case on both sides: what is taken apart may have capitals anew.
  const folded = text
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase();
  return folded.match(WORDS) ?? [];
}

/**
 * What the words of a list begin with in the index: so that a search walks over the words of its own list alone.
 * Two lists may share it: what is found is looked up among the records of the list.
 */
export function listMark(instanceId: string, resource: string): string {
  return createHash('sha256').update(`${instanceId} ${resource}`).digest('hex').slice(0, 8);
}

/** The words of a text as they stand in the index. */
export function markedWords(text: string, mark: string): string {
  let marked = '';
  for (const word of wordsOf(text)) marked += `${mark}${word.slice(0, LONGEST_WORD)} `;
  return marked;
}

/**
 * The index's query for what somebody typed: each word must be there as the beginning of a word; what is typed
 * without a space but consists of several words, like an address, as these words in a row. Only letters and digits
 * get into it, so that whatever is typed is harmless.
 *
 * @returns undefined when there is nothing in it to look for
 */
export function searchQuery(typed: string, mark: string): string | undefined {
  const phrases = typed
    .split(/\s+/)
    .map((part) => markedWords(part, mark).trim())
    .filter((phrase) => phrase !== '')
    .map((phrase) => `"${phrase}" *`);
  return phrases.length === 0 ? undefined : phrases.join(' AND ');
}
