import {
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { pathOf } from './dialect/sqlite.ts';
import { SchemaError } from './migrate.ts';
import { existingFile, openDatabase } from './open-database.ts';

/** All pages in one step: with smaller ones, every write of the app would begin the backup anew. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * What a restored database needs, on both databases: another installation id, so that older jobs in Redis are ignored; and
 * writes that must not come twice become unknown, as the service may have them since the backup.
 */
export const AFTER_RESTORE = [
  "delete from settings where name = 'installation_id'",
  `update outbox set state = 'unknown', error = 'A backup was restored.'
    where state in ('pending', 'sending') and is_repeatable = 0`,
].map((statement) => statement.replace(/\n */, ' '));

/** What SQLite keeps beside a database: the log holds its last changes. */
const LOG = '-wal';
const COMPANIONS = [LOG, '-shm'];

/**
 * Writes the SQLite database of a URL into a file, while the app runs.
 *
 * @param file only its owner can read it
 * @throws Error when there is no database, or the file exists
 */
export async function backUp(url: string, file: string): Promise<void> {
  const path = existingFile(url);
  // SQLite would write an old log into the backup.
  const taken = ['', ...COMPANIONS].map((suffix) => file + suffix).find(isThere);
  if (taken !== undefined) throw new Error(`${taken} exists. Name a new file. Nothing was done.`);
  const part = `${file}-part`;
  rmSync(part, { force: true });
  closeSync(openSync(part, 'wx', 0o600));
  const sqlite = new Sqlite(path, { fileMustExist: true });
  try {
    await sqlite.backup(part, { progress: () => ALL_PAGES });
    renameSync(part, file);
  } finally {
    sqlite.close();
    rmSync(part, { force: true });
  }
}

/**
 * Puts a backup in the place of the SQLite database of a URL, and keeps the files from before beside it.
 *
 * The copy gets this version's schema, and what {@link AFTER_RESTORE} says.
 *
 * @param now milliseconds since 1970; it names the files from before
 * @returns where the database from before is, if there was one
 * @throws Error when a process has the database open, or the file is no backup that this version can read
 */
export async function restore(url: string, file: string, now: number): Promise<string | undefined> {
  const path = targetOf(pathOf(url));
  if (!existsSync(file)) throw new Error(`There is no file ${file}. Nothing was done.`);
  refuseIfOpen(path);
  const fresh = `${path}-restoring`;
  const removeFresh = () => {
    for (const suffix of ['', ...COMPANIONS]) rmSync(fresh + suffix, { force: true });
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  removeFresh();
  try {
    for (const suffix of ['', LOG].filter((one) => existsSync(file + one))) {
      closeSync(openSync(fresh + suffix, 'wx', 0o600));
      copyFileSync(file + suffix, fresh + suffix);
    }
    await prepare(fresh, file);
    // A second time: the check of a large backup takes a while.
    refuseIfOpen(path);
    const before = `${path}-before-${new Date(now).toISOString().replaceAll(/\W/g, '')}`;
    // SQLite would write an old write-ahead log over the backup.
    const old = [...COMPANIONS, ''].filter((suffix) => existsSync(path + suffix));
    for (const suffix of old) renameSync(path + suffix, before + suffix);
    renameSync(fresh, path);
    return old.length > 0 ? before : undefined;
  } finally {
    removeFresh();
  }
}

/** Whether there is a file, or a link to none. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The file that a link leads to, as to another disk: it is the one to replace. */
function targetOf(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  return isThere(path) ? resolve(dirname(path), readlinkSync(path)) : path;
}

/** A missing database needs no lock. Nobody works with a damaged one. */
function refuseIfOpen(path: string): void {
  if (!existsSync(path)) return;
  const sqlite = new Sqlite(path, { timeout: 0 });
  try {
    sqlite.pragma('locking_mode = exclusive');
    sqlite.exec('begin exclusive; rollback');
  } catch (error) {
    const code = error instanceof Sqlite.SqliteError ? error.code : '';
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return;
    if (!code.startsWith('SQLITE_BUSY')) throw error;
    throw new Error(`A process has ${path} open. End the web app and the workers first. Nothing was done.`);
  } finally {
    sqlite.close();
  }
}

/** Checks a copy of a backup, brings it to this version's schema, and takes the installation id out of it. */
async function prepare(copy: string, file: string): Promise<void> {
  try {
    const sqlite = new Sqlite(copy);
    try {
      const problem = sqlite.pragma('quick_check(1)', { simple: true });
      if (problem !== 'ok') throw new Error(`it is damaged, ${problem}`);
      sqlite.exec('select name from kysely_migration');
      await (await openDatabase(`file:${copy}`)).destroy();
      for (const statement of AFTER_RESTORE) sqlite.exec(statement);
    } finally {
      sqlite.close();
    }
  } catch (error) {
    const reason =
      error instanceof SchemaError ? 'a newer version of this app made it' : (error as Error).message;
    throw new Error(`${file} is no backup that this version can restore: ${reason}. Nothing was done.`, {
      cause: error,
    });
  }
}
