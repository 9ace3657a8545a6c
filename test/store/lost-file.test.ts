import fs, { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { tempDir } from '../support/temp-dir.ts';
import { runDocumented } from './operations-page.ts';
import { openTestStore } from './test-store.ts';

async function open() {
  const dir = join(tempDir(), 'data');
  const path = join(dir, 'app.db');
  const store = await openTestStore(path);
  const id = await store.addInstance();
  return { store, dir, path, id };
}

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** As if another volume were mounted over the directory: a new one numbers its files like the one before. */
function mountOver(path: string): void {
  const { statSync } = fs;
  vi.spyOn(fs, 'statSync').mockImplementation(((file, options) => {
    const found = statSync(file, options);
    if (file === path && typeof found?.dev === 'bigint') found.dev += 1n;
    return found;
  }) as typeof statSync);
  syncBuiltinESMExports();
}

/** What may become of a file beneath a process that has it open. */
const LOSSES: [string, RegExp, (parts: { dir: string; path: string }) => void][] = [
  ['is removed', /has been removed/, ({ path }) => rmSync(path)],
  ['is moved away with its directory', /has been removed/, ({ dir }) => renameSync(dir, `${dir}-away`)],
  [
    'is replaced by another',
    /has been replaced/,
    ({ path }) => {
      writeFileSync(`${path}-other`, 'another');
      renameSync(`${path}-other`, path);
    },
  ],
  ['has another of the same number mounted over it', /has been replaced/, ({ path }) => mountOver(path)],
];

test.each(LOSSES)('a database file that %s: the check says so, and what to do', async (_what, said, lose) => {
  const { store, dir, path } = await open();
  await store.db.check();
  lose({ dir, path });
  const failed = store.db.check();
  await expect(failed).rejects.toThrow(said);
  await expect(failed).rejects.toThrow(
    /End every process of the app, put the right file in its place, .* and start again/,
  );
});

test.each(LOSSES)('a database file that %s: nothing more is written into it', async (_what, said, lose) => {
  const { store, dir, path, id } = await open();
  const { claim } = await store.claimRun();
  lose({ dir, path });
  await expect(store.write(claim, ['{"id":"1"}'])).rejects.toThrow(said);
  await expect(store.addInstance()).rejects.toThrow(said);
  await expect(store.runs.start({ instanceId: id, resource: 'contacts' }, 1)).rejects.toThrow(said);
  await expect(store.runs.claim(claim)).rejects.toThrow(said);
});

test('a database file that was away once is not written into any more, though it is back', async () => {
  const { store, path } = await open();
  renameSync(path, `${path}-away`);
  await expect(store.db.check()).rejects.toThrow('has been removed');
  renameSync(`${path}-away`, path);
  await expect(store.db.check()).rejects.toThrow('has been removed');
  await expect(store.addInstance()).rejects.toThrow('has been removed');
  await store.db.destroy();
  await (await openDatabase(store.url)).check();
});

test.each(['-wal', '-shm'])(
  'the %s file is removed: nothing more is written, and nothing is lost when all end in order',
  async (suffix) => {
    const { store, path, id } = await open();
    const other = await openDatabase(store.url);
    await other.check();
    rmSync(path + suffix);
    for (const db of [store.db, other]) {
      await expect(db.check()).rejects.toThrow(`The database’s ${suffix} file has been removed`);
    }
    await expect(store.addInstance()).rejects.toThrow(
      /End every process of the app with SIGTERM, .* and start again/,
    );
    await store.db.destroy();
    await other.destroy();
    const again = await openDatabase(store.url);
    await again.check();
    expect(await again.selectFrom('instances').select('id').execute()).toEqual([{ id }]);
    await again.destroy();
  },
);

test.each(['-wal', '-shm'])(
  'the %s file of a database that is known by a link is looked for where it is',
  async (suffix) => {
    const dir = tempDir();
    const [path, link] = [join(dir, 'volume/app.db'), join(dir, 'app.db')];
    mkdirSync(join(dir, 'volume'));
    symlinkSync('volume/app.db', link);
    const store = await openTestStore(link);
    await store.db.check();
    rmSync(path + suffix);
    await expect(store.db.check()).rejects.toThrow(`The database’s ${suffix} file has been removed`);
    await expect(store.addInstance()).rejects.toThrow('has been removed');
  },
);

test('a link to the database that leads to another one meanwhile: nothing more is written', async () => {
  const dir = tempDir();
  const link = join(dir, 'app.db');
  symlinkSync('one.db', link);
  const store = await openTestStore(link);
  writeFileSync(join(dir, 'other.db'), 'another');
  rmSync(link);
  symlinkSync('other.db', link);
  await expect(store.addInstance()).rejects.toThrow('has been replaced');
});

test('a backup that is restored while a process has the file open is not touched by that one', async () => {
  const { store, path, id } = await open();
  const backup = join(tempDir(), 'backup.db');
  await runDocumented('Back up', { database: path, backup });
  await store.addInstance();
  await runDocumented('Restore', { database: path, backup });
  await expect(store.addInstance()).rejects.toThrow('has been replaced');
  await store.db.destroy();
  const restored = new Sqlite(path, { fileMustExist: true });
  expect(restored.prepare('select id from instances').pluck().all()).toEqual([id]);
  restored.close();
});

test('a database whose file was removed while nothing ran is made anew', async () => {
  const { store, path } = await open();
  await store.db.destroy();
  rmSync(path);
  const again = await openDatabase(store.url);
  await again.check();
  expect(await again.selectFrom('instances').selectAll().execute()).toEqual([]);
  await again.destroy();
});
