import type { UnreadableRecord } from '../src/store/search-index.ts';

/** What the thread of the search index is told at its start, and later by memory that both sides see. */
export interface IndexThreadData {
  databaseUrl: string;
  /** Instead of those of {@link KeptLog}. */
  longLogPages?: number | undefined;
  /** See {@link CELL}. */
  cells: Int32Array<SharedArrayBuffer>;
}

/** What the thread tells: a record that no search finds, or the size of a log that somebody keeps, in MB. */
export type IndexThreadMessage = { unreadable: UnreadableRecord } | { logMb: number };

/** Places in the shared memory. */
export const CELL = {
  /** 1 when the thread is to end; it is woken when this changes. */
  isEnding: 0,
  /** How busy the process is with better things: the share of its event loop's time, in percent. */
  busyPercent: 1,
  /** The place in the queue of what the thread works on, or worked on last: when it dies, the next one begins behind it. */
  entry: 2,
} as const;

/** How the thread is called among those of the process; 15 letters at most. */
export const INDEX_THREAD = 'search-index';
