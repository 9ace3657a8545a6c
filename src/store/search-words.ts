import { createHash } from 'node:crypto';
import anyAscii from 'any-ascii';
import { MOST_COST, type SearchCost } from './search-cost.ts';

/** Longer words are found by their first so many characters. */
const LONGEST_WORD = 64;

/** So much of a record is found, in UTF-16 units and in words; what is behind that is not. */
export const MOST_TEXT = 256 * 1_024;
export const MOST_WORDS = 10_000;

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

/**
 * What the words of a list begin with in the index: so that a search walks over the words of its own list alone.
 * Two lists may share it: what is found is looked up among the records of the list.
 */
export function listMark(instanceId: string, resource: string): string {
  return createHash('sha256').update(`${instanceId} ${resource}`).digest('hex').slice(0, 8);
}

function marked(words: readonly string[], mark: string): string {
  let all = '';
  for (const word of words) all += `${mark}${word.slice(0, LONGEST_WORD)} `;
  return all;
}

/** The words of a text as they stand in the index: the first {@link MOST_WORDS} of its first {@link MOST_TEXT}. */
export function markedWords(text: string, mark: string): string {
  const numbers = text.slice(0, MOST_TEXT).match(NUMBER)?.map(backwards) ?? [];
  return marked([...wordsOf(text), ...new Set(numbers)].slice(0, MOST_WORDS), mark);
}

/** What was typed without a space between: words in a row. */
interface Phrase {
  words: string[];
  /** Whether the last word may go on. */
  isBeginning: boolean;
}

/** What somebody looks for, in the index's language. */
export interface SearchQuery {
  query: string;
  /** Not all words that were typed are in it. */
  isShortened: boolean;
  /** Some are in it as whole words, in any order, as their beginnings or rows would have taken too long to look for. */
  isCoarse: boolean;
}

/**
 * The index's query for what somebody typed: each word must be there as the beginning of a word, a single letter or
 * digit as a whole one, as every record has words that begin with it; what is typed without a space but consists of
 * several words, like an address, as these words in a row. A number is found however it is written. Only letters and digits get into it, so that whatever is
 * typed is harmless; and a few words, each once, and what would take long as whole words alone, so that it is soon found.
 *
 * @param cost of a marked word; see search-cost.ts
 * @returns undefined when there is nothing in it to look for
 */
export function searchQuery(typed: string, mark: string, cost: SearchCost): SearchQuery | undefined {
  const numbers = [...new Set(typed.match(NUMBER) ?? [])].slice(0, MOST_NUMBERS);
  const phrases: Phrase[] = [];
  for (const part of typed.replace(NUMBER, ' ').split(/\s+/)) {
    const words = wordsOf(part);
    if (words.length > 0) phrases.push({ words, isBeginning: [...(words.at(-1) ?? '')].length > 1 });
  }
  const { sought, isShortened } = firstWords(withoutRepeated(phrases));
  if (sought.length + numbers.length === 0) return undefined;
  const { affordable, isCoarse } = withinCost(sought, (word, isBeginning) => cost(mark + word, isBeginning));
  const written = ({ words, isBeginning }: Phrase) =>
    `"${marked(words, mark).trim()}"${isBeginning ? ' *' : ''}`;
  const parts = [
    ...affordable.map(written),
    ...numbers.map((number) => `(${waysToWrite(number).map(written).join(' OR ')})`),
  ];
  return { query: parts.join(' AND '), isShortened, isCoarse };
}

/** A number as it was typed, without what stands between its digits, and by its last digits. */
function waysToWrite(number: string): Phrase[] {
  const digits = number.replace(/\D/g, '');
  const significant = digits.replace(/^0+(?=\d{6})/, '').slice(-TELLING_DIGITS);
  const ways = [wordsOf(number), [digits], [backwards(significant)]];
  return ways.map((words) => ({ words, isBeginning: true }));
}

/** What would cost too much by its whole words, each anywhere: those are looked for record by record, each record in no time. */
function withinCost(
  phrases: readonly Phrase[],
  cost: SearchCost,
): { affordable: Phrase[]; isCoarse: boolean } {
  let left = MOST_COST;
  const affordable = phrases.flatMap((phrase) => {
    const taken = phraseCost(phrase, cost);
    if (taken > left) return phrase.words.map((word) => ({ words: [word], isBeginning: false }));
    left -= taken;
    return [phrase];
  });
  const isCoarse = affordable.some((phrase) => !phrases.includes(phrase));
  return { affordable: withoutRepeated(affordable), isCoarse };
}

function phraseCost({ words, isBeginning }: Phrase, cost: SearchCost): number {
  if (words.length === 1 && !isBeginning) return 0;
  return words.reduce((sum, word, at) => sum + cost(word, isBeginning && at === words.length - 1), 0);
}

/** Without what is there anyway wherever another one is: the same, or one that begins with it. */
function withoutRepeated(phrases: readonly Phrase[]): Phrase[] {
  const texts = phrases.map(({ words }) => `${words.join(' ')} `);
  return phrases.filter(({ isBeginning }, at) => {
    const text = texts[at] ?? '';
    const start = isBeginning ? text.trimEnd() : text;
    return !texts.some((other, from) => (other === text ? from < at : other.startsWith(start)));
  });
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
