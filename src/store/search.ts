import type { Database } from './database.ts';
import { LIST_OF } from './runs.ts';
import { openSearchCost } from './search-cost.ts';
import { listMark, searchQuery } from './search-words.ts';

/** Matches of a search are counted up to here. */
const MOST_COUNTED = 10_000;

/** What is looked for, and the part of what is found that is wanted. */
export interface WantedSearch {
  instanceId: string;
  resource: string;
  typed: string;
  offset: number;
  limit: number;
}

/** What a search has found. */
export interface FoundRecords {
  /** Of the part that was wanted. */
  seqs: number[];
  /** How many there are in all, as far as they were counted. */
  total: number;
  hasMore: boolean;
  isShortened: boolean;
  isCoarse: boolean;
}

/** Looks words up in the index. SQLite cannot be stopped before it has the first match: see search-thread.ts. */
export class Search {
  readonly #db: Database;
  readonly #matches: ReturnType<typeof prepare>;
  readonly #cost: ReturnType<typeof openSearchCost>;

  constructor(db: Database) {
    this.#db = db;
    this.#matches = prepare(db);
    this.#cost = openSearchCost(db);
  }

  /** Answers which records have all that was typed. */
  find(wanted: WantedSearch): Promise<FoundRecords> {
    return this.#db.atOnce(() => this.#find(wanted));
  }

  #find({ instanceId, resource, typed, offset, limit }: WantedSearch): FoundRecords {
    const mark = listMark(instanceId, resource);
    const sought = searchQuery(typed, mark, this.#cost(mark));
    if (sought === undefined)
      return { seqs: [], total: 0, hasMore: false, isShortened: false, isCoarse: false };
    // At once for the page and the number: what begins the search takes the most of its time.
    const seqs = this.#matches.all(sought.query, instanceId, resource, MOST_COUNTED + 1);
    return {
      seqs: seqs.slice(offset, offset + limit),
      total: Math.min(seqs.length, MOST_COUNTED),
      hasMore: seqs.length > MOST_COUNTED,
      isShortened: sought.isShortened,
      isCoarse: sought.isCoarse,
    };
  }
}

/** Looked up among the records of the list, as the index may be behind, and its words are told apart by a short mark. */
function prepare(db: Database) {
  return db
    .prepare<[query: string, string, string, limit: number], number>(`
      select seq from search cross join records on records.seq = search.rowid
      where search match ? and list = ${LIST_OF} and deleted_at is null
      order by search.rowid limit ?`)
    .pluck();
}
