import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { writeWithoutBreak } from './log-writer.ts';
import { documented, runDocumented } from './operations-page.ts';

/** Writes some forty megabytes into a database. */
async function grow(path: string): Promise<void> {
  const writer = await writeWithoutBreak(path);
  await waitFor(() => writer.written() > 300);
  await writer.end();
}

/** A database with a backup of it, in a directory of its own. */
async function backedUp() {
  const database = join(tempDir(), 'app.db');
  await (await openDatabase(`file:${database}`)).destroy();
  const dir = tempDir();
  const files = { database, backup: join(dir, 'backup.db') };
  await runDocumented('Back up', files);
  return { dir, ...files };
}

/** How many rows of the noise there are, in a database that is whole. */
function rows(path: string): unknown {
  const db = new Sqlite(path, { fileMustExist: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  const count = db.prepare('select count(*) from noise').pluck().get();
  db.close();
  return count;
}

/** Databases of a directory that have more than a megabyte, by their names, with when they were last written. */
function largeDatabases(dir: string): Map<string, bigint> {
  const found = new Map<string, bigint>();
  for (const name of readdirSync(dir)) {
    if (/-(?:wal|shm|journal)$/.test(name)) continue;
    // It may have another name by now.
    const stats = statSync(join(dir, name), { bigint: true, throwIfNoEntry: false });
    if (stats !== undefined && stats.size > 1_000_000) found.set(name, stats.mtimeNs);
  }
  return found;
}

/** Backs up, and kills it as soon as more than a megabyte has been written into a database. */
async function killUnderWay(dir: string, files: { database: string; backup: string }): Promise<void> {
  const before = largeDatabases(dir);
  const { args, cwd, env } = documented('Back up', files);
  const backUp = spawn('sh', args, { cwd, env, detached: true, stdio: 'pipe' });
  const closed = once(backUp, 'close');
  for (const stream of [backUp.stdout, backUp.stderr]) stream.resume();
  const isUnderWay = () => [...largeDatabases(dir)].some(([name, written]) => before.get(name) !== written);
  while (backUp.exitCode === null && !isUnderWay()) await turn();
  // With what it has started: they are a group of processes.
  if (backUp.exitCode === null && backUp.pid !== undefined) process.kill(-backUp.pid, 'SIGKILL');
  await closed;
}

test('a backup that is known by a link, of a database that is, takes the place of the one before it where that is', async () => {
  const { dir, database, backup } = await backedUp();
  const links = { database: join(tempDir(), 'app.db'), backup: join(tempDir(), 'backup.db') };
  symlinkSync(database, links.database);
  symlinkSync(backup, links.backup);
  await grow(database);
  await runDocumented('Back up', links);
  expect(readlinkSync(links.backup)).toBe(backup);
  expect(readdirSync(dir)).toEqual(['backup.db']);
  expect(rows(backup)).toBe(rows(database));
});

test('a first backup lands where the link leads that it is known by', async () => {
  const database = join(tempDir(), 'app.db');
  const [backup, link] = [join(tempDir(), 'first.db'), join(tempDir(), 'backup.db')];
  await (await openDatabase(`file:${database}`)).destroy();
  symlinkSync(backup, link);
  await runDocumented('Back up', { database, backup: link });
  expect(readlinkSync(link)).toBe(backup);
  expect(statSync(backup).size).toBeGreaterThan(0);
});

test('a backup that is killed on its way leaves the one from before as it was, and the next one goes well', async () => {
  const { dir, database, backup } = await backedUp();
  await grow(database);
  let before: Buffer;
  let restored: string;
  do {
    before = readFileSync(backup);
    await killUnderWay(dir, { database, backup });
    restored = join(tempDir(), 'app.db');
    await runDocumented('Restore', { database: restored, backup });
    // Too late it was where the new one has taken its place, as a whole.
  } while (!readFileSync(restored).equals(before) && rows(restored) === rows(database));
  expect(readFileSync(restored).equals(before)).toBe(true);

  await runDocumented('Back up', { database, backup });
  expect(readdirSync(dir)).toEqual(['backup.db']);
  expect(rows(backup)).toBe(rows(database));
});

test('a backup over one that somebody was writing into, and was killed, is whole, and can be restored', async () => {
  const { database, backup } = await backedUp();
  const writer = spawnEntry('test/store/write-and-hang.ts', {}, { args: [`file:${backup}`] });
  await writer.waitForOutput(/written/);
  await writer.stop('SIGKILL');
  expect(statSync(`${backup}-wal`).size).toBeGreaterThan(0);
  await grow(database);
  await runDocumented('Back up', { database, backup });
  const restored = join(tempDir(), 'app.db');
  await runDocumented('Restore', { database: restored, backup });
  expect(rows(restored)).toBe(rows(database));
  expect(rows(backup)).toBe(rows(database));
});
