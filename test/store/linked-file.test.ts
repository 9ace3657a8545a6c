import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, linkSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { openTestStore } from './test-store.ts';

/** Why a database is not opened. */
async function refusalOf(path: string): Promise<string> {
  const opened = await openDatabase(`file:${path}`).catch((error: Error) => error.message);
  if (typeof opened === 'string') return opened;
  await opened.destroy();
  return 'it was opened';
}

/** The commands at the end of a refusal. */
const commandsOf = (refusal: string) => refusal.slice(refusal.indexOf('\n') + 1);

test('a database file with a further name, made while a process runs, is opened by none of its names: that process goes on, and by the commands of the message the file is one of its own, with all of it', async () => {
  const dir = join(tempDir(), 'a b');
  mkdirSync(dir);
  const [path, other, link] = [join(dir, 'app.db'), join(dir, 'other.db'), join(dir, 'link.db')];
  const store = await openTestStore(path);
  const first = await store.addInstance();
  linkSync(path, other);
  symlinkSync(path, link);
  for (const name of [path, other, link]) {
    expect(await refusalOf(name)).toMatch(/has a further name .*Nor is the other one a backup.*\n/);
  }
  // A directory has several names by itself.
  expect(await refusalOf(dir)).not.toContain('further name');
  const second = await store.addInstance();
  await store.db.check();
  await store.db.destroy();

  const refusal = await refusalOf(link);
  execFileSync('sh', ['-c', commandsOf(refusal)]);
  const before = readFileSync(other);
  const own = await openTestStore(link);
  const third = await own.addInstance('ins_9');
  const ids = (await own.db.selectFrom('instances').select('id').execute()).map(({ id }) => id);
  expect(ids.sort()).toEqual([first, second, third].sort());
  await own.db.destroy();
  expect(readFileSync(other)).toEqual(before);
});

test('a log with a further name, as where its directory was copied by links after a kill, is refused as well; nothing of it is lost', async () => {
  const dir = join(tempDir(), 'data');
  const path = join(dir, 'app.db');
  await (await openDatabase(`file:${path}`)).destroy();
  const writer = spawnEntry('test/store/write-and-hang.ts', {}, { args: [`file:${path}`] });
  await writer.waitForOutput(/written/);
  await writer.stop('SIGKILL');
  execFileSync('cp', ['-al', dir, `${dir}-copy`]);
  expect(statSync(`${path}-wal`).nlink).toBe(2);
  // As if the database alone had been made a file of its own.
  copyFileSync(path, `${path}-own`);
  renameSync(`${path}-own`, path);

  const refusal = await refusalOf(path);
  const commands = commandsOf(refusal);
  expect(commands).toContain(`mv '${path}-wal-own' '${path}-wal'`);
  expect(commands).not.toContain('app.db-own');
  execFileSync('sh', ['-c', commands]);
  expect(await refusalOf(path)).toBe('it was opened');
  const sqlite = new Sqlite(path, { fileMustExist: true });
  expect(sqlite.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(sqlite.prepare("select count(*) from instances where name = 'Late'").pluck().get()).toBe(600);
  sqlite.close();
});

test('a process whose database file has a further name does not start, and leaves it as it is', async () => {
  const path = join(tempDir(), 'app.db');
  await (await openDatabase(`file:${path}`)).destroy();
  linkSync(path, `${path}-backup`);
  const before = readFileSync(path);
  const started = spawnEntry('src/worker.ts', {
    DATABASE_URL: `file:${path}`,
    REDIS_URL: 'redis://127.0.0.1:9',
    TOKEN_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    SESSION_SECRET: 'of the test alone, and long enough',
  });
  expect(await started.exited).toEqual({ code: 1, signal: null });
  expect(started.output()).toContain(`The database file ${path} has a further name`);
  expect(readFileSync(path)).toEqual(before);
});
