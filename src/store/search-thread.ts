import { parentPort, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import type { Database } from './database.ts';
import { joinDatabase } from './open-database.ts';
import { Search, type WantedSearch } from './search.ts';
import { END, type SearchAnswer, type SearchMessage } from './search-thread-messages.ts';

let db: Database | undefined;
let search: Search | undefined;

async function answer(wanted: WantedSearch): Promise<SearchAnswer> {
  try {
    db ??= await joinDatabase(workerData.databaseUrl);
    search ??= new Search(db);
    return { found: await search.find(wanted) };
  } catch (error) {
    // It would arrive as an object of no class, without a message.
    if (error instanceof Sqlite.SqliteError) return { message: error.message, code: error.code };
    throw error;
  }
}

async function heed(message: SearchMessage): Promise<void> {
  if (message !== END) return parentPort?.postMessage(await answer(message));
  await db?.destroy();
  parentPort?.close();
}

// One search at a time: the next one comes when this one is answered. The end may come before.
let heeded: Promise<void> = Promise.resolve();
parentPort?.on('message', (message: SearchMessage) => {
  heeded = heeded.then(() => heed(message));
});
