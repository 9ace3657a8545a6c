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
const TABLES = `
  select count(*) from sqlite_master where type = 'table' and name not like 'sqlite_%' and name not like 'kysely_%'`;

const ADVICE = "set DATABASE_URL to that of the app's other processes. Nothing was done.";

/** The path that a `file:` URL of a database stands for. */
export function pathOf(url: string): string {
  return url.replace(/^file:(\/\/(?=\/))?/, '');
}

/**
 * The path of a directory beside a database that is there, so that all processes on it see each other, also from containers,
 * and also where one of them knows it by a link.
 */
export function dirBeside(url: string, what: 'processes' | 'workers'): string {
  return besideDatabase(pathOf(url), `-${what}`);
}

/**
 * Makes sure that a file is a database of this app, of whatever version, before anything changes it: its schema, its
 * rights, or what lies beside it.
 *
 * @throws Error that says what to do, when it is none
 */
export function checkOwnDatabase(path: string): void {
  if (!isFilled(path)) throw new Error(`There is no database in ${path}: ${ADVICE}`);
  if (!isSqlite(path)) throw new Error(`What is in ${path} is no SQLite database: ${ADVICE}`);
  if (!ask(path, (has) => has(OURS) && has(FIRST_MIGRATION))) throw anotherPrograms(path, ADVICE);
}

/**
 * Makes sure that a file is not the database of another program, before the app's tables are made in it.
 *
 * @throws Error that says what to do
 */
export function refuseAnotherPrograms(path: string): void {
  if (!isFilled(path) || !isSqlite(path)) return;
  const mayBeOurs = ask(path, (has) => !has(TABLES) || (has(OURS) && has(FIRST_MIGRATION)));
  if (!mayBeOurs)
    throw anotherPrograms(path, 'set DATABASE_URL to a file of the app’s own. Nothing was done.');
}

function anotherPrograms(path: string, advice: string): Error {
  return new Error(`The database in ${path} is another program's, not one of this app: ${advice}`);
}

function isFilled(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size > 0;
}

/** Whether a file is a database of SQLite's, by its beginning. */
export function isSqlite(path: string): boolean {
  return headerOf(path).toString('latin1', 0, MAGIC.length) === MAGIC;
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

/** Reads in a database, and changes nothing. */
function ask(path: string, about: (has: (count: string) => boolean) => boolean): boolean {
  // Who might write copies a log into the file at the end, as the last one to close it. Who only reads leaves an empty log
  // where there was none, and fails where a journal is to be rolled back.
  const readonly = headerOf(path)[READ_VERSION_AT] === WITH_LOG && existsSync(besideDatabase(path, '-wal'));
  try {
    const sqlite = new Sqlite(path, { readonly, fileMustExist: true });
    try {
      return about((count) => Number(sqlite.prepare(count).pluck().get()) > 0);
    } finally {
      sqlite.close();
    }
  } catch (error) {
    throw explainTrouble(error);
  }
}
