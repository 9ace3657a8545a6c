import { readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Places in the file's header and in that of a frame (SQLite's file format, section 4). */
const PAGE_SIZE_AT = 8;
const SALT_AT = 16;
const FRAME_SALT_AT = 8;
const SALT_BYTES = 8;

/** What was written to a database, by the table or index that the pages belong to. */
export interface WrittenPages {
  /** Pages of 4 KB, each as often as it was written. */
  byName: Map<string, number>;
  bytes: number;
}

/**
 * The pages of the database that a write-ahead log holds, in the order in which they were written, by number. What an
 * earlier round of the log left behind its end is not among them.
 */
export function pagesInLog(log: Buffer): number[] {
  if (log.length < HEADER_BYTES) return [];
  const salt = log.subarray(SALT_AT, SALT_AT + SALT_BYTES);
  const frameBytes = FRAME_HEADER_BYTES + log.readUInt32BE(PAGE_SIZE_AT);
  const pages: number[] = [];
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    if (!log.subarray(at + FRAME_SALT_AT, at + FRAME_SALT_AT + SALT_BYTES).equals(salt)) break;
    pages.push(log.readUInt32BE(at));
  }
  return pages;
}

/**
 * Sees everything that is written to a SQLite file from now on, whoever writes: while it looks on, the write-ahead log
 * is not begun anew, and holds each page of the database as often as it was written.
 */
export class WriteWitness {
  readonly #path: string;
  readonly #sqlite: Sqlite.Database;
  readonly #before: number;

  /** @param path of a file that others have open, in WAL mode */
  constructor(path: string) {
    this.#path = path;
    this.#sqlite = new Sqlite(path);
    // All that was written before goes into the file, and the next write begins the log anew.
    this.#sqlite.pragma('wal_checkpoint(TRUNCATE)');
    this.#before = pagesInLog(readFileSync(`${path}-wal`)).length;
    this.#sqlite.exec('begin');
    this.#sqlite.prepare('select count(*) from runs').get();
  }

  /** Ends the watch. */
  written(): WrittenPages {
    const pages = pagesInLog(readFileSync(`${this.#path}-wal`)).slice(this.#before);
    this.#sqlite.exec('commit');
    const owners = this.#sqlite
      .prepare<[], { name: string; pageno: number }>('select name, pageno from dbstat')
      .all();
    const pageSize = Number(this.#sqlite.pragma('page_size', { simple: true }));
    this.#sqlite.close();
    const nameOf = new Map(owners.map(({ name, pageno }) => [pageno, name]));
    const byName = new Map<string, number>();
    for (const page of pages) {
      const name = nameOf.get(page) ?? 'free';
      byName.set(name, (byName.get(name) ?? 0) + 1);
    }
    return { byName, bytes: pages.length * (pageSize + FRAME_HEADER_BYTES) };
  }
}
