import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { pagesInLog, WriteWitness } from './support/log-frames.ts';

function database() {
  const path = join(tempDir(), 'a.db');
  const sqlite = new Sqlite(path);
  sqlite.pragma('journal_mode = WAL');
  sqlite.exec('create table runs (id integer primary key, pages integer)');
  sqlite.exec('create table records (id text primary key, document text)');
  return { path, sqlite };
}

test('the witness tells by table what another connection writes, and nothing of before', () => {
  const { path, sqlite } = database();
  sqlite.prepare('insert into records values (?, ?)').run('a', 'before');
  const witness = new WriteWitness(path);
  sqlite.prepare('insert into runs values (1, 1)').run();
  sqlite.prepare('update runs set pages = 2').run();
  const { byName, bytes } = witness.written();
  expect([...byName]).toEqual([['runs', 2]]);
  expect(bytes).toBeGreaterThan(2 * 4096);

  const again = new WriteWitness(path);
  sqlite.prepare('insert into records values (?, ?)').run('b', 'after');
  const names = again.written().byName;
  expect(names.get('records')).toBe(1);
  expect(names.get('sqlite_autoindex_records_1')).toBe(1);
  expect(names.has('runs')).toBe(false);
  sqlite.close();
});

test('what an earlier round of the log left behind its end is not read', () => {
  const { path, sqlite } = database();
  for (let id = 0; id < 20; id++) sqlite.prepare('insert into runs values (?, 0)').run(id);
  sqlite.pragma('wal_checkpoint(RESTART)');
  sqlite.prepare('update runs set pages = 1 where id = 0').run();
  expect(pagesInLog(readFileSync(`${path}-wal`))).toHaveLength(1);
  sqlite.close();
});
