import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { besideDatabase } from './own-file.ts';
import { explainTrouble } from './trouble.ts';

/** What a SQLite file begins with, and where behind it stands whether its writes go into a log first (file format, 1.3). */
const MAGIC = 'SQLite format 3\0';
const READ_VERSION_AT = 19;
const WITH_LOG = 2;
const HEADER_BYTES = 100;

/** Another program may have tables of these names, or migrations; hardly all of it. */
const OURS = `
  select (select count(*) from sqlite_master where type = 'table'
    and name in ('kysely_migration', 'instances', 'tokens', 'runs', 'records')) = 5`;
const FIRST_MIGRATION = "select count(*) from kysely_migration where name = '0001-initial'";

const ADVICE = "set DATABASE_URL to that of the app's other processes. Nothing was done.";

/** The path that a `file:` URL of a database stands for. */
export function pathOf(url: string): string {
  return url.replace(/^file:(\/\/(?=\/))?/, '');
}

/**
 * The path of a directory beside a database that is there, so that all processes on it see each other, also from containers,
 * and also where one of them knows it by a link.
 */
export function dirBeside(url: string, what: 'processes' | 'refreshes' | 'workers'): string {
  return besideDatabase(pathOf(url), `-${what}`);
}

/**
 * Makes sure that a file is a database of this app, of whatever version, before anything changes it: its schema, its
 * rights, or what lies beside it.
 *
 * @throws Error that says what to do, when it is none
 */
export function checkOwnDatabase(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile() || stats.size === 0) throw new Error(`There is no database in ${path}: ${ADVICE}`);
  const header = headerOf(path);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) {
    throw new Error(`What is in ${path} is no SQLite database: ${ADVICE}`);
  }
  // Who only reads a file with a log that nobody has open leaves an empty log there; who might write takes it away again.
  const leavesLog = header[READ_VERSION_AT] === WITH_LOG && !existsSync(besideDatabase(path, '-wal'));
  if (!isOurs(path, !leavesLog)) {
    throw new Error(`The database in ${path} is another program's, not one of this app: ${ADVICE}`);
  }
}

function headerOf(path: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, 'r');
  try {
    readSync(file, header);
  } finally {
    closeSync(file);
  }
  return header;
}

function isOurs(path: string, readonly: boolean): boolean {
  try {
    const sqlite = new Sqlite(path, { readonly, fileMustExist: true });
    try {
      const has = (question: string) => Number(sqlite.prepare(question).pluck().get()) > 0;
      return has(OURS) && has(FIRST_MIGRATION);
    } finally {
      sqlite.close();
    }
  } catch (error) {
    throw explainTrouble(error);
  }
}
