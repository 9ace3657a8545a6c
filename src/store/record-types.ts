/** A record of the copy. */
export interface StoredRecord {
  id: string;
  /** The document's text as the service sent it, on one line; of a large one the beginning. */
  document: string;
  /** Whether it is the beginning alone. */
  isCut: boolean;
  /** Milliseconds since 1970, local clock. */
  updatedAt: number;
  /** When a finished run no longer saw it, or null. */
  deletedAt: number | null;
}

/** One page of the copy for browsing. */
export interface RecordPage {
  records: StoredRecord[];
  /** How many records match in all; of a search, as far as they were counted. */
  total: number;
  /** More match than were counted. */
  hasMore: boolean;
  /** How many records of the list a search does not find yet: their texts are not in the index. */
  pending: number;
  /** Not all words that were typed were looked for. */
  isShortened: boolean;
  /** Some of what was typed is so common that only whole words were looked for, anywhere in a record. */
  isCoarse: boolean;
}

/** A copy that was removed while it was read: what was read of it is not the whole. */
export class CopyRemovedError extends Error {
  override readonly name = 'CopyRemovedError';

  constructor() {
    super('The copy was removed while it was read.');
  }
}

/** A search that was not done, as too many are under way or it takes too long: it may be asked for again later. */
export class SearchRefusedError extends Error {
  override readonly name = 'SearchRefusedError';
  readonly reason: 'too_many' | 'too_long';

  constructor(reason: 'too_many' | 'too_long', message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Reading the copy of one instance, by resource name. */
export interface RecordReader {
  /**
   * Records in the order in which they were first copied; `search` finds words by their beginnings, see search-words.ts. Deleted ones are left out.
   *
   * @throws SearchRefusedError when a search is not done
   */
  browse(
    instanceId: string,
    resource: string,
    options: { search?: string; offset: number; limit: number },
  ): Promise<RecordPage>;
  find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined>;
  /**
   * Every document that is not deleted, as text, read in small portions: memory stays flat.
   *
   * @throws CopyRemovedError when the copy is removed on the way
   */
  stream(instanceId: string, resource: string): AsyncIterable<string>;
}
