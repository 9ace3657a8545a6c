import { workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';

/** What it is told. */
export interface WriterData {
  /** Of a database with a table `noise (text)`. */
  path: string;
  /** How often it has written; whether it is to end. */
  cells: Int32Array;
}

const { path, cells }: WriterData = workerData;
const sqlite = new Sqlite(path, { timeout: 60_000 });
// As the event loop does, which leaves the log to a thread.
sqlite.pragma('wal_autocheckpoint = 0');
sqlite.pragma('synchronous = NORMAL');
const insert = sqlite.prepare('insert into noise values (?)');
while (Atomics.load(cells, 1) === 0) {
  insert.run('x'.repeat(128 * 1024));
  Atomics.add(cells, 0, 1);
  Atomics.wait(cells, 1, 0, 1);
}
sqlite.close();
