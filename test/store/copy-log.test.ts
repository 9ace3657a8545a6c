import { closeSync, openSync, readSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { copyLog } from '../../src/store/copy-log.ts';
import { KeptLog } from '../../src/store/kept-log.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { writeWithoutBreak } from './log-writer.ts';

const LONG_LOG_PAGES = 500;

function openInLogMode(path: string): Sqlite.Database {
  const sqlite = new Sqlite(path);
  sqlite.pragma('journal_mode = WAL');
  sqlite.pragma('wal_autocheckpoint = 0');
  sqlite.exec('create table noise (text)');
  return sqlite;
}

/** How many pages the log has, and how many of them are copied. */
function look(sqlite: Sqlite.Database) {
  const [found] = sqlite.pragma('wal_checkpoint(noop)') as { log: number; checkpointed: number }[];
  if (found === undefined) throw new Error('SQLite does not tell');
  return found;
}

/** How often the log has begun anew, as its header says ("checkpoint sequence number"). */
function beginnings(path: string): number {
  const file = openSync(`${path}-wal`, 'r');
  try {
    const header = Buffer.alloc(16);
    readSync(file, header, 0, header.length, 0);
    return header.readUInt32BE(12);
  } finally {
    closeSync(file);
  }
}

test('a long log begins anew, also while somebody writes without a break', async () => {
  const path = `${tempDir()}/app.db`;
  const sqlite = openInLogMode(path);
  const writer = await writeWithoutBreak(path);
  const rounds = 10;
  let begunAnew = 0;
  for (let round = 0; round < rounds; round++) {
    await waitFor(async () => look(sqlite).log >= LONG_LOG_PAGES);
    const before = beginnings(path);
    copyLog(sqlite, LONG_LOG_PAGES);
    const writtenBefore = writer.written();
    await waitFor(() => writer.written() > writtenBefore + 1);
    if (beginnings(path) > before) begunAnew++;
  }
  // On a busy machine the writer may stand still in the midst of a write: the next time does then.
  expect(begunAnew).toBeGreaterThan(rounds / 2);
  await writer.end();
  expect(sqlite.prepare('select count(*) as rows from noise').get()).toEqual({ rows: writer.written() });
  sqlite.close();
});

test('a log that is not long is copied, and nobody has to wait', () => {
  const path = `${tempDir()}/app.db`;
  const sqlite = openInLogMode(path);
  const other = new Sqlite(path, { timeout: 0 });
  other.exec("begin immediate; insert into noise values ('under way')");
  copyLog(sqlite, LONG_LOG_PAGES);
  const { log, checkpointed } = look(sqlite);
  expect(checkpointed).toBe(log);
  other.exec('commit');
  other.close();
  sqlite.close();
});

test('who reads for long keeps a long log from beginning anew, and no longer', () => {
  const path = `${tempDir()}/app.db`;
  const sqlite = openInLogMode(path);
  const insert = sqlite.prepare('insert into noise values (?)');
  const fill = () => insert.run('x'.repeat(4_096 * LONG_LOG_PAGES));
  fill();
  const reader = new Sqlite(path);
  reader.exec('begin');
  reader.prepare('select count(*) from noise').get();
  fill();
  copyLog(sqlite, LONG_LOG_PAGES);
  expect(look(sqlite).checkpointed).toBeLessThan(look(sqlite).log);
  expect(sqlite.pragma('busy_timeout', { simple: true })).toBe(5_000);
  reader.close();
  copyLog(sqlite, LONG_LOG_PAGES);
  const before = beginnings(path);
  fill();
  expect(beginnings(path)).toBe(before + 1);
  sqlite.close();
});

test('a log that grows long, as somebody reads for long, is told once with its size, and again when that comes again', () => {
  const path = `${tempDir()}/app.db`;
  const sqlite = openInLogMode(path);
  const insert = sqlite.prepare('insert into noise values (?)');
  const fill = () => insert.run('x'.repeat(4_096 * LONG_LOG_PAGES));
  const kept = new KeptLog(LONG_LOG_PAGES);
  const look = () => kept.note(copyLog(sqlite));
  for (let episode = 0; episode < 2; episode++) {
    const reader = new Sqlite(path);
    reader.exec('begin');
    reader.prepare('select count(*) from noise').get();
    insert.run('short');
    expect(look()).toBeUndefined();
    fill();
    expect(look()).toBe(2);
    fill();
    expect([look(), look()]).toEqual([undefined, undefined]);
    reader.close();
    // All of it can be copied now: so the next write begins it anew.
    expect(look()).toBeUndefined();
    insert.run('short');
    expect(look()).toBeUndefined();
  }
  sqlite.close();
});

test('a long log that nobody keeps is not told', () => {
  const sqlite = openInLogMode(`${tempDir()}/app.db`);
  const kept = new KeptLog(LONG_LOG_PAGES);
  sqlite.prepare('insert into noise values (?)').run('x'.repeat(4_096 * LONG_LOG_PAGES));
  expect(kept.note(copyLog(sqlite))).toBeUndefined();
  sqlite.close();
});
