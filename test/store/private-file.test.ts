import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { tempDir } from '../support/temp-dir.ts';
import { writeWithoutBreak } from './log-writer.ts';
import { runDocumented } from './operations-page.ts';

const umask = process.umask(0o022);
afterAll(() => void process.umask(umask));

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

async function newFile(): Promise<string> {
  const path = join(tempDir(), 'app.db');
  await (await openDatabase(`file:${path}`)).destroy();
  return path;
}

test('a file that others could read is its owner’s alone as soon as it is opened, with those beside it', async () => {
  const path = await newFile();
  expect(modeOf(path)).toBe(0o600);
  chmodSync(path, 0o644);
  // Another process has it open, since before.
  const other = new Sqlite(path);
  other.pragma('user_version = 1');
  const files = [path, `${path}-wal`, `${path}-shm`];
  expect(files.map(modeOf)).toEqual([0o644, 0o644, 0o644]);
  const db = await openDatabase(`file:${path}`);
  expect(files.map(modeOf)).toEqual([0o600, 0o600, 0o600]);
  await db.destroy();
  other.close();
});

test('so are those of a database that is known by a link', async () => {
  const path = await newFile();
  const link = join(tempDir(), 'link.db');
  symlinkSync(path, link);
  chmodSync(path, 0o644);
  const other = new Sqlite(path);
  other.pragma('user_version = 1');
  const db = await openDatabase(`file:${link}`);
  expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual([0o600, 0o600, 0o600]);
  await db.destroy();
  other.close();
});

test.runIf(process.getuid?.() === 0)('a file of another owner is left to that one', async () => {
  const path = await newFile();
  chmodSync(path, 0o640);
  chownSync(path, 4711, 4711);
  const db = await openDatabase(`file:${path}`);
  expect(modeOf(path)).toBe(0o640);
  await db.destroy();
});

test('a backup by the command of the operations page is its owner’s alone, and ends while others write', async () => {
  const path = await newFile();
  const copy = join(tempDir(), 'backup.db');
  const backUp = (from: string) => runDocumented('Back up', { database: from, backup: copy });
  await expect(backUp(`${path}.typo`)).rejects.toThrow('unable to open database file');
  const writer = await writeWithoutBreak(path);
  await backUp(path);
  await writer.end();
  expect(modeOf(copy)).toBe(0o600);
  // So is the next one in its place, whoever could read this one, or what is left of one that was killed.
  chmodSync(copy, 0o644);
  writeFileSync(`${copy}-new`, '', { mode: 0o644 });
  await backUp(path);
  expect(modeOf(copy)).toBe(0o600);
  const db = await openDatabase(`file:${copy}`);
  expect(await db.selectFrom('instances').selectAll().execute()).toEqual([]);
  await db.destroy();
});

test.each(['', '/'])(
  'a directory is no database file: “%s” at its end, the error says what to do',
  async (end) => {
    const dir = tempDir();
    await expect(openDatabase(`file:${dir}${end}`)).rejects.toThrow(
      `DATABASE_URL leads to a directory, not to a file: put the file’s name behind it, as in file:${dir}/app.db, and start again.`,
    );
    expect(readdirSync(dir)).toEqual([]);
  },
);

test('nor is one made of a path that ends like that of a directory', async () => {
  const dir = join(tempDir(), 'new');
  await expect(openDatabase(`file:${dir}/`)).rejects.toThrow(`as in file:${dir}/app.db,`);
  expect(existsSync(dir)).toBe(false);
});

test('nor is a pipe, which is left as it is', async () => {
  const path = join(tempDir(), 'pipe');
  execFileSync('mkfifo', ['-m', '666', path]);
  const mode = modeOf(path);
  await expect(openDatabase(`file:${path}`)).rejects.toThrow(
    `DATABASE_URL leads to ${path}, which is a device, a pipe or a socket, not a file: set it to a file of the app’s own, and start again.`,
  );
  expect(modeOf(path)).toBe(mode);
});

test('a file that is no database keeps its rights', async () => {
  const path = join(tempDir(), 'hostname');
  writeFileSync(path, 'app-7.internal.example, with other things than a database\n');
  chmodSync(path, 0o644);
  await expect(openDatabase(`file:${path}`)).rejects.toThrow('file is not a database');
  expect(modeOf(path)).toBe(0o644);
});

test.each([
  ['delete', ''],
  ['wal', ''],
  ['delete', "create table kysely_migration (name); insert into kysely_migration values ('0001-initial')"],
])('nor is anything done to the database of another program (%s) %s', async (mode, more) => {
  const dir = tempDir();
  const path = join(dir, 'shop.sqlite');
  const shop = new Sqlite(path);
  shop.exec(`pragma journal_mode = ${mode}; create table orders (id integer); ${more}`);
  shop.close();
  chmodSync(path, 0o644);
  const before = readFileSync(path);
  await expect(openDatabase(`file:${path}`)).rejects.toThrow(
    `The database in ${path} is another program's, not one of this app: set DATABASE_URL to a file of the app’s own. Nothing was done.`,
  );
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(readdirSync(dir)).toEqual(['shop.sqlite']);
  expect(modeOf(path)).toBe(0o644);
});

test('one whose making was broken off before it had tables is the app’s', async () => {
  const path = join(tempDir(), 'app.db');
  const begun = new Sqlite(path);
  begun.exec('pragma journal_mode = wal; create table kysely_migration (name); drop table kysely_migration');
  begun.close();
  const db = await openDatabase(`file:${path}`);
  expect(await db.selectFrom('instances').selectAll().execute()).toEqual([]);
  await db.destroy();
});

test('a path that leads through a file says so, and what to do', async () => {
  const file = join(tempDir(), 'a file');
  writeFileSync(file, '');
  await expect(openDatabase(`file:${file}/app.db`)).rejects.toThrow(
    /^The database file .*a file\/app\.db can be neither opened nor made: .*set DATABASE_URL to another file, and start again\.$/,
  );
});
