import type { FoundRecords, WantedSearch } from './search.ts';

/** Has the thread of the searches close its database, and end. */
export const END = null;

/** What the thread of the searches is told. */
export type SearchMessage = WantedSearch | typeof END;

/** What it answers to a {@link WantedSearch}: what it has found, or what SQLite said instead. */
export type SearchAnswer = { found: FoundRecords } | { message: string; code: string };
