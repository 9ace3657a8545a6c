import type { Database } from './database.ts';

/** Of a marked word as it stands in the index, or of all that begin with it: what it takes to look for it. */
export type SearchCost = (word: string, isBeginning: boolean) => number;

/** So much may beginnings and rows of a search cost: a few dozen milliseconds, which other searches wait for. */
export const MOST_COST = 6_000;

/** A page that other words begin on takes so many times as long as one that goes on with the places of a word. */
const COST_OF_WORDS = 10;

/** As many pages with words as make a word too expensive: there is no need to count further. */
const ENOUGH = MOST_COST / COST_OF_WORDS + 1;

/** Each word in the tables of the index has a letter before its own. */
const MAIN_INDEX = '0';

/** Bytes that stand in no word: the first behind the word itself, and the last behind all that begin with it. */
const BEHIND_WORD = Buffer.from([0x00]);
const BEHIND_BEGINNING = Buffer.from([0xff]);

/**
 * Tells what a search would cost before it begins: SQLite gives the first match only when it has put together the places
 * of all words with a beginning, and cannot be stopped. It takes about a millisecond. FTS5 notes for each of its
 * pages that a word begins on what word that is, in a table, so the pages between two words are their difference there
 * (https://sqlite.org/fts5.html, "The FTS Index"); what is being merged just now may count twice.
 *
 * The last page before a word counts where it may have words of the same list, so that one company's words make no
 * other's search expensive: it begins with one, or what the next begins with is noted up to where it differs from the
 * word before, and that is behind the mark. Of a first page nothing is noted: its word stands behind its header.
 *
 * @returns tells for the mark of a list, then for a word how many pages have its places; those with many words tenfold
 */
export function openSearchCost(db: Database): (mark: string) => SearchCost {
  const pages = db.prepare<[{ list: Buffer; from: Buffer; to: Buffer }], { words: number; others: number }>(`
    with recursive segments(segment) as (
      select min(segid) from search_idx
      union all
      select (select min(segid) from search_idx where segid > segment) from segments where segment is not null),
    ranges as (
      select
        (select count(*) from (
          select 1 from search_idx where segid = segment and term >= :from and term < :to limit ${ENOUGH})) as words,
        coalesce(
          (select pgno >> 1 from search_idx where segid = segment and term >= :to order by term limit 1),
          (select (max(id) & 0x7fffffff) + 1 from search_data
            where id between segment << 37 and (segment << 37) + 0x7fffffff)) as behind,
        iif(
          exists (select 1 from search_idx where segid = segment and term >= :list and term < :from)
          or exists (
            select 1 from (select term from search_idx where segid = segment and term >= :from order by term limit 1)
            where length(term) > length(:list) and instr(term, :list) = 1)
          or exists (
            select 1 from (
              select block from search_data
              where id between segment << 37 and (segment << 37) + 0x7fffffff order by id limit 1)
            where instr(substr(block, 5, 12), :list) > 0),
          (select pgno >> 1 from search_idx where segid = segment and term < :from order by term desc limit 1),
          (select pgno >> 1 from search_idx where segid = segment and term >= :from and term < :to
            order by term limit 1)) as first
      from segments where segment is not null)
    select coalesce(sum(words), 0) as words, coalesce(sum(behind - first - 1 - words), 0) as others from ranges`);
  return (mark) => {
    const list = Buffer.from(MAIN_INDEX + mark);
    return (word, isBeginning) => {
      const from = Buffer.from(MAIN_INDEX + word);
      const to = Buffer.concat([from, isBeginning ? BEHIND_BEGINNING : BEHIND_WORD]);
      const { words, others } = pages.get({ list, from, to }) ?? { words: 0, others: 0 };
      return words * COST_OF_WORDS + others;
    };
  };
}
