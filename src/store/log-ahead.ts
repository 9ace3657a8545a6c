import { setTimeout as sleep } from 'node:timers/promises';
import type Sqlite from 'better-sqlite3';
import { isBusy } from './busy.ts';

/** How soon it is tried again, in milliseconds. */
const PAUSE_MS = 20;

/**
 * Switches a database to write-ahead logging. Processes that start together on a new file all switch it, and SQLite lets
 * none wait for another here.
 *
 * @param patienceMs how long the others are waited for, in milliseconds
 * @throws the error of SQLite's when it cannot be done; the database is closed then
 */
export async function logAhead(sqlite: Sqlite.Database, patienceMs: number): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  for (;;) {
    try {
      sqlite.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (isBusy(error) && performance.now() < giveUpAt) await sleep(PAUSE_MS);
      else {
        sqlite.close();
        throw error;
      }
    }
  }
}
