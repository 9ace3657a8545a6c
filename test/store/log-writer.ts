import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { waitFor } from '../support/wait-for.ts';

/** Places of what both threads know. */
const CELL = { written: 0, isEnding: 1 } as const;

interface WriterData {
  path: string;
  cells: Int32Array;
}

/** Writes 128 KB every millisecond or two into a table of its own, `noise`, from a thread. */
export async function writeWithoutBreak(path: string) {
  const cells = new Int32Array(new SharedArrayBuffer(8));
  const workerData: WriterData = { path, cells };
  const writer = new Worker(fileURLToPath(import.meta.url), { workerData });
  const ended = once(writer, 'exit');
  /** How many rows are there. */
  const written = () => Atomics.load(cells, CELL.written);
  await waitFor(() => written() > 0);
  return {
    written,
    async end() {
      Atomics.store(cells, CELL.isEnding, 1);
      await ended;
    },
  };
}

if (!isMainThread && workerData?.cells instanceof Int32Array) {
  const { path, cells }: WriterData = workerData;
  const sqlite = new Sqlite(path, { timeout: 60_000 });
  sqlite.exec('create table if not exists noise (text)');
  // As the event loop does, which leaves the log to a thread.
  sqlite.pragma('wal_autocheckpoint = 0');
  sqlite.pragma('synchronous = NORMAL');
  const insert = sqlite.prepare('insert into noise values (?)');
  while (Atomics.load(cells, CELL.isEnding) === 0) {
    insert.run('x'.repeat(128 * 1024));
    Atomics.add(cells, CELL.written, 1);
    Atomics.wait(cells, CELL.isEnding, 0, 1);
  }
  sqlite.close();
}
