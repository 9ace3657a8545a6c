import type { Database } from './database.ts';
import { documentValues } from './document-values.ts';
import { PORTION_LENGTH } from './portion.ts';
import { listMark, MOST_TEXT, markedWords } from './search-words.ts';

/** Puts records into the queue: their list, their `seq`s as JSON, and how many they are. */
export const QUEUE_FOR_SEARCH = 'insert into search_queue (list, seqs, count) values (?, ?, ?)';

/** What one portion of work on the index came to. */
export interface IndexedPortion {
  /** How many records the index knows now; none when somebody else was quicker. */
  records: number;
  /** Those of them whose documents are damaged: no search finds them. */
  unreadable: UnreadableRecord[];
}

/** A record whose document cannot be read. */
export interface UnreadableRecord {
  instanceId: string;
  resource: string;
  list: number;
  seq: number;
}

/** How the work on the queue begins. */
export interface SearchIndexOptions {
  /** The place of an entry that the one before got into trouble with: it comes after all that stands behind it. */
  behind?: number;
  /** Called with the place of each entry before anything is done with it. */
  onEntry?: (place: number) => void;
}

/** So many words are written at a time, in UTF-16 units, however few records that are: for some ten milliseconds. */
const WORDS_LENGTH = 512 * 1_024;

/**
 * The index grows by parts with each portion. Four of a size are merged into one, so each page is written again for each
 * size: when that falls behind, SQLite merges a thousand parts at once, which takes seconds. So each portion merges as much as
 * it has written, for as many sizes as there are in practice; what is left is done when the queue is empty.
 */
const MERGED_SIZES = 8;

/** So many pages are merged in a transaction, in a millisecond or two; and so long are the words of a page. */
const MERGED_PAGES = 16;
const PAGE_LENGTH = 4_000;

interface QueueRow {
  place: number;
  list: number;
  instance_id: string;
  resource: string;
  seqs: string;
}

/** A record of the queue as it was read: without a hash it is deleted, or gone. */
interface ReadRecord {
  seq: number;
  hash: string | undefined;
  /** Undefined when the document is damaged. */
  words: string | undefined;
}

/**
 * Keeps the index of the records' words up, behind the pages: whoever writes records puts their `seq`s into a queue
 * in the same transaction. Records are read and taken apart without the write lock, which pages wait for, and leave the
 * queue in the transaction that writes their words, if they still are what was read: so that nothing is lost or
 * left, whoever ends when, and however many threads and processes do it.
 */
export class SearchIndex {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #options: SearchIndexOptions;
  /** Where somebody else was quicker, or somebody got into trouble: it is looked behind it. */
  #after: number;
  /** False when nothing was written since there was nothing to merge. */
  #hasParts = true;

  constructor(db: Database, options: SearchIndexOptions = {}) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#options = options;
    this.#after = options.behind ?? 0;
  }

  /**
   * Works on the oldest entry of the queue.
   *
   * @param limit of how many records at the most, fewer where they are large; the others are left to the next portion
   * @returns undefined when the queue is empty
   */
  async indexPortion(limit: number): Promise<IndexedPortion | undefined> {
    const row = await this.#db.atOnce(() => this.#next());
    if (row === undefined) return undefined;
    this.#options.onEntry?.(row.place);
    const seqs: number[] = JSON.parse(row.seqs);
    const read = await this.#db.atOnce(() => this.#read(row, seqs.slice(0, limit)));
    const done = await this.#db.writeAtOnce(() => this.#write(row, read, seqs.slice(read.length)));
    this.#after = done.length === 0 ? row.place : (this.#options.behind ?? 0);
    await this.#mergeAfter(read);
    const { list, instance_id: instanceId, resource } = row;
    const unreadable = done
      .filter(({ words }) => words === undefined)
      .map(({ seq }) => ({ instanceId, resource, list, seq }));
    return { records: done.length, unreadable };
  }

  /**
   * Merges some pages of the index's parts, in a transaction of its own, so that pages of records may come in between.
   *
   * @returns false when there is nothing to merge
   */
  async mergeParts(): Promise<boolean> {
    if (!this.#hasParts) return false;
    const { merge, changes } = this.#statements;
    // Beside the merging itself, which counts as one (https://sqlite.org/fts5.html, "The 'merge' Command").
    this.#hasParts = await this.#db.writeAtOnce(() => {
      const before = changes.get() ?? 0;
      merge.run();
      return (changes.get() ?? 0) - before > 1;
    });
    return this.#hasParts;
  }

  async #mergeAfter(written: ReadRecord[]): Promise<void> {
    this.#hasParts = true;
    const length = written.reduce((sum, { words }) => sum + (words?.length ?? 0), 0);
    const times = (length * MERGED_SIZES) / (PAGE_LENGTH * MERGED_PAGES);
    for (let left = Math.max(1, times); left > 0 && (await this.mergeParts()); left -= 1);
  }

  #next(): QueueRow | undefined {
    const { oldest } = this.#statements;
    return oldest.get(this.#after) ?? (this.#after > 0 ? oldest.get(0) : undefined);
  }

  /** The first of these records, until they make a portion. */
  #read({ list, instance_id, resource }: QueueRow, seqs: number[]): ReadRecord[] {
    const mark = listMark(instance_id, resource);
    const read: ReadRecord[] = [];
    let length = 0;
    let wordsLength = 0;
    for (const seq of seqs) {
      if (length >= PORTION_LENGTH || wordsLength >= WORDS_LENGTH) break;
      const found = this.#statements.record.get(seq, list);
      const words = found === undefined ? '' : readWords(found.document, mark);
      read.push({ seq, hash: found?.hash, words });
      length += found?.document.length ?? 0;
      wordsLength += words?.length ?? 0;
    }
    return read;
  }

  /** Returns those that were written; those that were changed since they were read are left to the next portion. */
  #write({ place, list, seqs }: QueueRow, read: ReadRecord[], rest: number[]): ReadRecord[] {
    const { entry, take, keep, hash, write, forget } = this.#statements;
    if (entry.get(place)?.seqs !== seqs) return [];
    const isAsRead = (record: ReadRecord) => hash.get(record.seq, list)?.hash === record.hash;
    const changed: number[] = [];
    const done: ReadRecord[] = [];
    for (const record of read) {
      if (!isAsRead(record)) {
        changed.push(record.seq);
        continue;
      }
      if (record.hash === undefined) forget.run(record.seq);
      else write.run(record.seq, record.words ?? '');
      done.push(record);
    }
    const left = [...changed, ...rest];
    if (left.length === 0) take.run(place);
    else keep.run(JSON.stringify(left), left.length, place);
    return done;
  }
}

/** One record that cannot be read keeps none of the others from the index. */
function readWords(document: string, mark: string): string | undefined {
  try {
    return markedWords(documentValues(document, MOST_TEXT), mark);
  } catch {
    return undefined;
  }
}

function prepare(db: Database) {
  const live = 'from records where seq = ? and list = ? and deleted_at is null';
  return {
    oldest: db.prepare<[after: number], QueueRow>(`
      select place, list, instance_id, resource, seqs from search_queue join runs using (list)
      where place > ? order by place limit 1`),
    entry: db.prepare<[place: number], { seqs: string }>('select seqs from search_queue where place = ?'),
    take: db.prepare<[place: number]>('delete from search_queue where place = ?'),
    keep: db.prepare<[seqs: string, count: number, place: number]>(
      'update search_queue set seqs = ?, count = ? where place = ?',
    ),
    record: db.prepare<[seq: number, list: number], { hash: string; document: string }>(
      `select hash, document ${live}`,
    ),
    hash: db.prepare<[seq: number, list: number], { hash: string }>(`select hash ${live}`),
    write: db.prepare<[seq: number, words: string]>(
      'insert or replace into search (rowid, words) values (?, ?)',
    ),
    merge: db.prepare<[]>(`insert into search (search, rank) values ('merge', ${MERGED_PAGES})`),
    changes: db.prepare<[], number>('select total_changes()').pluck(),
    forget: db.prepare<[seq: number]>('delete from search where rowid = ?'),
  };
}
