import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { joinDatabase } from './database.ts';
import { type FoundRecords, Search, type WantedSearch } from './search.ts';

/** What the thread of the searches answers to a {@link WantedSearch}: what it has found, or what SQLite said instead. */
export type SearchAnswer = { found: FoundRecords } | { message: string; code: string };

let search: Search | undefined;

async function answer(wanted: WantedSearch): Promise<SearchAnswer> {
  try {
    search ??= new Search(await joinDatabase(workerData.databaseUrl));
    return { found: await search.find(wanted) };
  } catch (error) {
    // It would arrive as an object of no class, without a message.
    if (error instanceof Sqlite.SqliteError) return { message: error.message, code: error.code };
    throw error;
  }
}

// One at a time: the next one comes when this one is answered.
parentPort?.on('message', async (wanted: WantedSearch) => parentPort?.postMessage(await answer(wanted)));
