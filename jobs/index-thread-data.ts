/** What the thread of the search index is told at its start, and later by memory that both sides see. */
export interface IndexThreadData {
  databaseUrl: string;
  /** See {@link CELL}. */
  cells: Int32Array<SharedArrayBuffer>;
}

/** Places in the shared memory; each is 0 or 1. */
export const CELL = {
  /** Whether the thread is to end; it is woken when this changes. */
  isEnding: 0,
  /** Whether the process is busy with better things. */
  isBusy: 1,
} as const;

/** How the thread is called among those of the process; 15 letters at most. */
export const INDEX_THREAD = 'search-index';
