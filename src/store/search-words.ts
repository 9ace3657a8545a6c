import anyAscii from 'any-ascii';
import type { Phrase } from './database.ts';

/** Longer words are found by their first so many characters. */
const LONGEST_WORD = 64;

/** So much of a record is found, in UTF-16 units and in words; what is behind that is not. */
export const MOST_TEXT = 256 * 1_024;
const MOST_WORDS = 10_000;

/** So many words are looked for, as each takes its time. */
export const MOST_SOUGHT = 8;

/** And so many numbers. */
const MOST_NUMBERS = 2;

const PLAIN = /^\p{ASCII}*$/u;
const PLAIN_WORDS = /[a-z0-9]+/g;

// Scripts that are written without spaces, and pictures, are taken sign by sign.
const SPACELESS = String.raw`[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Bopo}\p{sc=Yiii}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Lana}\p{sc=Tale}\p{sc=Talu}\p{sc=Tavt}\p{sc=Tibt}\p{sc=Java}\p{sc=Bali}]`;
const WORDS = new RegExp(String.raw`${SPACELESS}|\p{So}|(?:(?!${SPACELESS})[\p{L}\p{N}])+`, 'gu');

/** Letters that Unicode does not take apart, such as ł, ø and ß. */
const LATIN = /[\p{sc=Latin}--\p{ASCII}]+/gv;

/** At least seven digits, however they are grouped: a telephone number, an order's number, a date. */
const NUMBER = /\+?\d(?:[ \u00a0()./-]{0,3}\d){6,19}/g;

/** Numbers are the same if so many of their last digits are: one may have a country's code, and the other a zero. */
const TELLING_DIGITS = 9;

/** Enough for two billion lists. */
const MARK_LENGTH = 8;

/** What a number backwards begins with in the index. */
const BACKWARDS = 'r';

/** The words of a text, without case and accents, as far as they count. */
function wordsOf(whole: string): string[] {
  const text = whole.slice(0, MOST_TEXT);
  if (PLAIN.test(text)) return text.toLowerCase().match(PLAIN_WORDS)?.slice(0, MOST_WORDS) ?? [];
  // What is taken apart may have capitals again, and may be many times as long.
  const folded = text
    .toLowerCase()
    .normalize('NFKD')
    .slice(0, MOST_TEXT)
    .replace(/\p{M}+/gu, '')
    .replace(LATIN, anyAscii)
    .slice(0, MOST_TEXT)
    .toLowerCase();
  return folded.match(WORDS)?.slice(0, MOST_WORDS) ?? [];
}

/** A number's digits backwards, as a word: so that its last digits are the beginning of the word. */
function backwards(number: string): string {
  return BACKWARDS + [...number.replace(/\D/g, '')].reverse().join('');
}

/** What the words of a list begin with in the index: a search walks over the words of its own list alone. */
export function listMark(list: number): string {
  return list.toString(36).padStart(MARK_LENGTH, '0');
}

function marked(words: readonly string[], mark: string): string[] {
  return words.map((word) => mark + word.slice(0, LONGEST_WORD));
}

/** The words of a text as they stand in the index: the first {@link MOST_WORDS} of its first {@link MOST_TEXT}. */
export function markedWords(text: string, mark: string): string[] {
  const numbers = text.slice(0, MOST_TEXT).match(NUMBER)?.map(backwards) ?? [];
  return marked([...wordsOf(text), ...new Set(numbers)].slice(0, MOST_WORDS), mark);
}

/** What somebody looks for: a record has to have one phrase of each group. */
interface SearchQuery {
  groups: Phrase[][];
  /** Not all words that were typed are in it. */
  isShortened: boolean;
}

/**
 * What somebody typed, as phrases of marked words. Each word is the beginning of a word; a single letter or digit is a
 * whole one, as every record has words that begin with it. What is typed without a space but consists of several words,
 * like an address, is these words in a row. A number is found however it is written. Only letters and digits get into
 * it, so that whatever is typed is harmless.
 */
export function searchQuery(typed: string, mark: string): SearchQuery {
  const numbers = [...new Set(typed.match(NUMBER) ?? [])].slice(0, MOST_NUMBERS);
  const phrases: Phrase[] = [];
  for (const part of typed.replace(NUMBER, ' ').split(/\s+/)) {
    const words = wordsOf(part);
    if (words.length > 0) phrases.push({ words, isBeginning: [...(words.at(-1) ?? '')].length > 1 });
  }
  const { sought, isShortened } = firstWords(phrases);
  const groups = [...sought.map((phrase) => [phrase]), ...numbers.map(waysToWrite)];
  return {
    groups: groups.map((group) =>
      group.map(({ words, ...rest }) => ({ ...rest, words: marked(words, mark) })),
    ),
    isShortened,
  };
}

/** A number as it was typed, without what stands between its digits, and by its last digits. */
function waysToWrite(number: string): Phrase[] {
  const digits = number.replace(/\D/g, '');
  const significant = digits.replace(/^0+(?=\d{6})/, '').slice(-TELLING_DIGITS);
  const ways = [wordsOf(number), [digits], [backwards(significant)]];
  return ways.map((words) => ({ words, isBeginning: true }));
}

/** As much of the phrases as is looked for. */
function firstWords(phrases: readonly Phrase[]): { sought: Phrase[]; isShortened: boolean } {
  const sought: Phrase[] = [];
  let room = MOST_SOUGHT;
  for (const { words, isBeginning } of phrases) {
    if (room === 0) return { sought, isShortened: true };
    if (words.length > room) {
      sought.push({ words: words.slice(0, room), isBeginning: false });
      return { sought, isShortened: true };
    }
    sought.push({ words, isBeginning });
    room -= words.length;
  }
  return { sought, isShortened: false };
}
