import {
  chmodSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { runDocumented } from './operations-page.ts';
import { openTestStore } from './test-store.ts';

/** A database with a backup of it, that a process wrote into afterwards, which was killed then. */
async function killedWithLog() {
  const dir = tempDir();
  const database = join(dir, 'app.db');
  const backup = join(tempDir(), 'backup.db');
  const store = await openTestStore(database);
  const { claim } = await store.claimRun();
  await store.write(
    claim,
    Array.from({ length: 100 }, (_, n) => `{"id":"${n}","name":"Name ${n}"}`),
  );
  await store.index();
  await runDocumented('Back up', { database, backup });
  await store.db.destroy();

  const writer = spawnEntry('test/store/write-and-hang.ts', {}, { args: [`file:${database}`] });
  await writer.waitForOutput(/written/);
  await writer.stop('SIGKILL');
  expect(statSync(`${database}-wal`).size).toBeGreaterThan(0);
  return { dir, database, backup };
}

/** Everything that a database holds. */
function contents(path: string) {
  const db = new Sqlite(path, { fileMustExist: true });
  const tables = db
    .prepare("select name from sqlite_master where type = 'table' order by name")
    .pluck()
    .all();
  const all = tables.map((name) => [name, db.prepare(`select * from "${name}"`).all()]);
  const integrity = db.pragma('integrity_check', { simple: true });
  db.close();
  return { all, integrity };
}

/** Every file of a directory with its bytes. */
const files = (dir: string) =>
  readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [name, readFileSync(join(dir, name))]);

/** All of a directory, those below it too, and each file's bytes. */
const contentsOf = (dir: string) =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => [name, statSync(join(dir, name)).isFile() && readFileSync(join(dir, name))]);

/** The directory of an `mv` that runs this before it moves anything. */
function withMove(before: string): string {
  const dir = tempDir();
  writeFileSync(join(dir, 'mv'), `#!/bin/sh\n${before}\ncommand -p mv "$@"\n`, { mode: 0o755 });
  return dir;
}

test('a backup restored by the command of the operations page, after a process that was killed, is exactly what the app begins with', async () => {
  const { dir, database, backup } = await killedWithLog();
  const before = files(dir);
  const { stdout } = await runDocumented('Restore', { database, backup });
  const [, away = ''] = /^restored; what was there before is in (.*)\n$/.exec(stdout) ?? [];
  expect(statSync(database).mode & 0o777).toBe(0o600);
  await (await openDatabase(`file:${database}`)).destroy();
  const restored = contents(database);
  expect(restored).toEqual(contents(backup));
  expect(restored).toMatchObject({ integrity: 'ok' });
  expect(JSON.stringify(restored.all)).toContain('Name 99');
  expect(JSON.stringify(restored.all)).not.toContain('Late');
  expect(files(away)).toEqual(before);
  expect(statSync(away).mode & 0o777).toBe(0o700);
});

test('a restore in the place of a database that is gone works just the same', async () => {
  const { backup } = await killedWithLog();
  const database = join(tempDir(), 'app.db');
  await runDocumented('Restore', { database, backup });
  expect(contents(database)).toEqual(contents(backup));
});

test('a restore where the database and the backup are known by links takes the files that they lead to; nothing of the old one is left but in the directory that it names', async () => {
  const { dir, database, backup } = await killedWithLog();
  const before = files(dir);
  const links = { database: join(tempDir(), 'link.db'), backup: join(tempDir(), 'backup.db') };
  symlinkSync(database, links.database);
  symlinkSync(backup, links.backup);
  writeFileSync(`${backup}-wal`, 'of something that was killed');
  await expect(runDocumented('Restore', links)).rejects.toMatchObject({
    stderr: expect.stringContaining(`not restored: ${backup}-wal is there`),
  });
  rmSync(`${backup}-wal`);

  const { stdout } = await runDocumented('Restore', links);
  const [, away = ''] = /^restored; what was there before is in (.*)\n$/.exec(stdout) ?? [];
  expect(readlinkSync(links.database)).toBe(database);
  expect(readdirSync(dirname(links.database))).toEqual(['link.db']);
  expect(files(away)).toEqual(before);
  expect(readdirSync(dir).sort()).toEqual(['app.db', basename(away)].sort());
  await (await openDatabase(`file:${links.database}`)).destroy();
  expect(contents(database)).toEqual(contents(backup));
});

test.each([
  ['a file that is not there', undefined],
  ['an empty file', ''],
  ['a file that is no database', 'not a database'],
])('a restore of %s fails, moves nothing, and leaves nothing', async (_what, text) => {
  const { dir, database } = await killedWithLog();
  const before = contentsOf(dir);
  const backup = join(tempDir(), 'wrong.db');
  if (text !== undefined) writeFileSync(backup, text);
  await expect(runDocumented('Restore', { database, backup })).rejects.toMatchObject({ stdout: '' });
  expect(contentsOf(dir)).toEqual(before);
});

test('a restore of a backup that is cut short fails, moves nothing, and leaves no copy of its tokens', async () => {
  const { dir, database, backup } = await killedWithLog();
  const before = contentsOf(dir);
  truncateSync(backup, statSync(backup).size - 4_096);
  chmodSync(backup, 0o400);
  await expect(runDocumented('Restore', { database, backup })).rejects.toMatchObject({ stdout: '' });
  expect(contentsOf(dir)).toEqual(before);
});

test.each(['app.db', 'app.db-wal', 'new'])(
  'a restore whose move of “%s” fails keeps all that there was, and the new one',
  async (stuck) => {
    const { dir, database, backup } = await killedWithLog();
    const before = files(dir);
    const path = withMove(`case "$1" in */${stuck}) echo 'no room' >&2; exit 1; esac`);
    await expect(runDocumented('Restore', { database, backup }, path)).rejects.toMatchObject({
      stdout: '',
      stderr: expect.stringContaining('no room'),
    });
    const away = readdirSync(dir).find((name) => name.startsWith('app.db-away-')) ?? 'none';
    const kept = [...files(dir), ...files(join(dir, away))];
    expect(Object.fromEntries(kept)).toEqual(Object.fromEntries([...before, ['new', readFileSync(backup)]]));
  },
);

test('a restore of a mix of two backups fails, moves nothing, and leaves nothing', async () => {
  const { dir, database, backup } = await killedWithLog();
  const later = join(tempDir(), 'later.db');
  await runDocumented('Back up', { database, backup: later });
  const before = contentsOf(dir);
  // As where one has been copied over the other, and not to its end.
  const mix = readFileSync(later);
  const first = mix.readUInt16BE(16);
  readFileSync(backup).copy(mix, first, first);
  writeFileSync(backup, mix);
  await expect(runDocumented('Restore', { database, backup })).rejects.toMatchObject({ stdout: '' });
  expect(contentsOf(dir)).toEqual(before);
});

test.each(['-wal', '-journal'])(
  'a restore of a backup with a “%s” beside it fails, moves nothing, and names it',
  async (ending) => {
    const { dir, database, backup } = await killedWithLog();
    const before = readdirSync(dir);
    writeFileSync(`${backup}${ending}`, 'of something that was killed');
    await expect(runDocumented('Restore', { database, backup })).rejects.toMatchObject({
      stdout: '',
      stderr: expect.stringContaining(`not restored: ${backup}${ending} is there`),
    });
    expect(readdirSync(dir)).toEqual(before);
    // One that holds nothing is left by whoever has only looked.
    writeFileSync(`${backup}${ending}`, '');
    await runDocumented('Restore', { database, backup });
  },
);
