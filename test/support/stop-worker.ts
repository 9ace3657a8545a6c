import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';

/** A signal takes effect at each thread's next turn, of which nothing tells: by then all of them have had one. */
const STOPS_WITHIN_MS = 50;

/**
 * Stops a worker as `SIGSTOP` does, but not within one of its transactions: the database would be held until it goes on.
 *
 * @param databaseUrl of the app whose worker it is
 */
export async function stopWorker(pid: number, databaseUrl: string): Promise<void> {
  for (;;) {
    process.kill(pid, 'SIGSTOP');
    await sleep(STOPS_WITHIN_MS);
    if (canWrite(databaseUrl)) return;
    process.kill(pid, 'SIGCONT');
    await sleep(STOPS_WITHIN_MS);
  }
}

function canWrite(databaseUrl: string): boolean {
  const db = new Sqlite(databaseUrl.replace('file:', ''), { timeout: 0 });
  try {
    db.exec('begin immediate; rollback');
    return true;
  } catch {
    return false;
  } finally {
    db.close();
  }
}
