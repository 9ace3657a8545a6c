import type { Database } from './database.ts';
import { documentValues } from './document-values.ts';
import { listMark, markedWords } from './search-words.ts';

/** Puts records into the queue: their list's instance and resource, their `seq`s as JSON, and how many they are. */
export const QUEUE_FOR_SEARCH =
  'insert into search_queue (instance_id, resource, seqs, count) values (?, ?, ?, ?)';

/** What one portion of work on the index came to. */
export interface IndexedPortion {
  /** How many records were looked at. */
  records: number;
}

/** The index grows by a part with each portion; so many pages of parts are merged with each, a few milliseconds' work. */
const MERGED_PAGES = 32;

interface QueueRow {
  place: number;
  instance_id: string;
  resource: string;
  seqs: string;
}

/**
 * Keeps the index of the records' words up, behind the pages: whoever writes records puts their `seq`s into a queue
 * in the same transaction, and a portion of the queue is worked off in one transaction, so that nothing is lost or
 * left, whoever ends when, and however many processes do it.
 */
export class SearchIndex {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
  }

  /**
   * Works on the oldest entry of the queue; what takes longer is left to the next portion.
   *
   * @param limitMs after how many milliseconds no further record is begun
   * @returns undefined when the queue is empty
   */
  async indexPortion(limitMs: number): Promise<IndexedPortion | undefined> {
    const { oldest, take, keep, record, write, forget, merge } = this.#statements;
    // Without the write lock: an empty queue costs nobody anything.
    if ((await this.#db.atOnce(() => oldest.get())) === undefined) return undefined;
    return this.#db.writeAtOnce(() => {
      const endsAt = performance.now() + limitMs;
      const row = oldest.get();
      if (row === undefined) return undefined;
      const mark = listMark(row.instance_id, row.resource);
      const seqs: number[] = JSON.parse(row.seqs);
      let done = 0;
      while (done < seqs.length && (done === 0 || performance.now() < endsAt)) {
        const seq = seqs[done++] ?? 0;
        const found = record.get(seq, row.instance_id, row.resource);
        if (found === undefined) forget.run(seq);
        else write.run(seq, markedWords(documentValues(found.document), mark));
      }
      if (done === seqs.length) take.run(row.place);
      else keep.run(JSON.stringify(seqs.slice(done)), seqs.length - done, row.place);
      merge.run();
      return { records: done };
    });
  }
}

function prepare(db: Database) {
  return {
    oldest: db.prepare<[], QueueRow>(
      'select place, instance_id, resource, seqs from search_queue order by place limit 1',
    ),
    take: db.prepare<[place: number]>('delete from search_queue where place = ?'),
    keep: db.prepare<[seqs: string, count: number, place: number]>(
      'update search_queue set seqs = ?, count = ? where place = ?',
    ),
    record: db.prepare<[seq: number, instanceId: string, resource: string], { document: string }>(
      'select document from records where seq = ? and instance_id = ? and resource = ? and deleted_at is null',
    ),
    write: db.prepare<[seq: number, words: string]>(
      'insert or replace into search (rowid, words) values (?, ?)',
    ),
    merge: db.prepare<[]>(`insert into search (search, rank) values ('merge', ${MERGED_PAGES})`),
    forget: db.prepare<[seq: number]>('delete from search where rowid = ?'),
  };
}
