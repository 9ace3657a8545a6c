import anyAscii from 'any-ascii';
import type { Phrase } from './database.ts';

/** The characters of a longer word that the index keeps. */
const LONGEST_WORD = 64;

/** How much of a record the index keeps, in UTF-16 units and in words. */
export const MOST_TEXT = 256 * 1_024;
const MOST_WORDS = 10_000;

export const MOST_SOUGHT = 8;

const MOST_NUMBERS = 2;

/** Letters and digits of ASCII, and whatever is not ASCII, in a row. */
const PARTS = /[a-z0-9\x80-\uffff]+/g;
const PLAIN = /^[a-z0-9]+$/;

// Each sign of a script without spaces, and each picture, is a word.
const SPACELESS = String.raw`[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Bopo}\p{sc=Yiii}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Lana}\p{sc=Tale}\p{sc=Talu}\p{sc=Tavt}\p{sc=Tibt}\p{sc=Java}\p{sc=Bali}]`;
const WORDS = new RegExp(String.raw`${SPACELESS}|\p{So}|(?:(?!${SPACELESS})[\p{L}\p{N}])+`, 'gu');

/** Letters that Unicode does not decompose, such as ł, ø and ß. */
const LATIN = /[\p{sc=Latin}--\p{ASCII}]+/gv;

const FINAL_SIGMA = /[σς]$/;

/** At least seven digits in any groups: a telephone number, an order's number, a date. */
const NUMBER = /\+?\d(?:[ \u00a0()./-]{0,3}\d){6,19}/g;

/** Numbers match by so many last digits: one may begin with a country code, the other with a zero. */
const TELLING_DIGITS = 9;

/** Enough for two billion lists. */
const MARK_LENGTH = 8;

/** Stands before a reversed number in the index. */
const BACKWARDS = 'r';

/** The words of a text, without case and accents. */
function wordsOf(whole: string): string[] {
  const parts = whole.slice(0, MOST_TEXT).toLowerCase().match(PARTS) ?? [];
  const words: string[] = [];
  for (const part of parts) {
    if (PLAIN.test(part)) words.push(part);
    else words.push(...foldedWords(part));
    if (words.length >= MOST_WORDS) return words.slice(0, MOST_WORDS);
  }
  return words;
}

/** The words of a part in which not all is ASCII. */
function foldedWords(part: string): string[] {
  // A decomposed text may hold capitals again, and may be many times as long.
  const folded = part
    .normalize('NFKD')
    .slice(0, MOST_TEXT)
    .replace(/\p{M}+/gu, '')
    .replace(LATIN, anyAscii)
    .slice(0, MOST_TEXT)
    .toLowerCase();
  return folded.match(WORDS)?.slice(0, MOST_WORDS) ?? [];
}

/** A number's digits in reverse, as a word that begins with the last digits. */
function backwards(number: string): string {
  return BACKWARDS + [...number.replace(/\D/g, '')].reverse().join('');
}

/** Stands before each word of a list in the index, so that a search reads the words of its own list alone. */
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

/** A search: a record must have one phrase of each group. */
interface SearchQuery {
  groups: Phrase[][];
  /** It leaves out some of the typed words. */
  isShortened: boolean;
}

/**
 * Turns a typed search into phrases of marked words. A typed word is the beginning of a word, but a single letter or digit
 * is a whole word. Words without a space between them, as in an e-mail address, must stand in a row. A number matches any
 * way to write it. Only letters and digits remain, so no input is harmful.
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
      group.flatMap(bothSigmas).map(({ words, ...rest }) => ({ ...rest, words: marked(words, mark) })),
    ),
    isShortened,
  };
}

/** A sigma ends a word in another form, and a typed beginning does not end the word. */
function bothSigmas(phrase: Phrase): Phrase[] {
  const last = phrase.words.at(-1) ?? '';
  if (!FINAL_SIGMA.test(last)) return [phrase];
  const rest = phrase.words.slice(0, -1);
  return ['σ', 'ς'].map((form) => ({ ...phrase, words: [...rest, last.replace(FINAL_SIGMA, form)] }));
}

/** A number as typed, its digits alone, and its last digits. */
function waysToWrite(number: string): Phrase[] {
  const digits = number.replace(/\D/g, '');
  const significant = digits.replace(/^0+(?=\d{6})/, '').slice(-TELLING_DIGITS);
  const ways = [wordsOf(number), [digits], [backwards(significant)]];
  return ways.map((words) => ({ words, isBeginning: true }));
}

/** The phrases with the first words that a search takes. */
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
