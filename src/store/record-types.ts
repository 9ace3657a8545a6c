/** A record of the copy. */
export interface StoredRecord {
  id: string;
  /** The document's text as the service sent it, on one line; of a large one the beginning. */
  document: string;
  /** Whether it is the beginning alone. */
  isCut: boolean;
  /** When it last changed, in milliseconds since 1970. */
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
}

/** Something in a list that the copy cannot keep, for people to look at. */
export interface RejectedRecord {
  reason: string;
  /** How its text begins, without secrets. */
  excerpt: string;
  /** How long its text is, in UTF-16 units. */
  length: number;
  /** When a run met it first, in milliseconds since 1970. */
  at: number;
}

/** A copy that was removed while it was read: what was read of it is not the whole. */
export class CopyRemovedError extends Error {
  override readonly name = 'CopyRemovedError';

  constructor() {
    super('The copy was removed while it was read.');
  }
}

/** Reading the copy of one instance, by resource name. */
export interface RecordReader {
  /** Live records in the order in which they were first copied; `search` finds words by their beginnings. */
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
