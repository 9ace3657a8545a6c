import {
  copyFileSync,
  existsSync,
  lstatSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { backUp, restore } from '../src/store/backup.ts';
import type { Database } from '../src/store/database.ts';
import { keepSetting, openDatabase } from '../src/store/open-database.ts';
import type { WriteState } from '../src/store/states.ts';
import { spawnEntry } from './support/spawn-entry.ts';
import { tempDir } from './support/temp-dir.ts';

function fresh() {
  const dir = tempDir();
  return { url: `file:${dir}/app.db`, path: join(dir, 'app.db'), file: join(dir, 'backup of today.db') };
}

/** Opens the database for some work, and closes it. */
async function within<Value>(url: string, work: (db: Database) => Promise<Value>): Promise<Value> {
  const db = await openDatabase(url, { migrates: true });
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

const write = (name: string, value: string) => (db: Database) => keepSetting(db, name, value);
const settings = async (db: Database) =>
  (await db.selectFrom('settings').selectAll().orderBy('name').execute()).map(({ name, value }) => [
    name,
    value,
  ]);

const NOW = Date.UTC(2026, 2, 1);

describe('backup', () => {
  it('copies what is committed while a process has the database open', async () => {
    const { url, file } = fresh();
    await within(url, async (db) => {
      await write('newest', 'in the write-ahead log')(db);
      await backUp(url, file);
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await within(`file:${file}`, settings)).toContainEqual(['newest', 'in the write-ahead log']);
  });

  it('overwrites no file, and makes none without a database', async () => {
    const { url, file } = fresh();
    await expect(backUp(url, file)).rejects.toThrow('There is no database in');
    expect(existsSync(file)).toBe(false);
    await within(url, write('a', 'b'));
    writeFileSync(file, 'dear');
    await expect(backUp(url, file)).rejects.toThrow('exists. Name a new file. Nothing was done.');
    expect(readFileSync(file, 'utf8')).toBe('dear');
  });

  it('refuses a name that a log or a broken link has: SQLite would write into the backup', async () => {
    const { url, file } = fresh();
    await within(url, write('a', 'b'));
    writeFileSync(`${file}-wal`, 'of another database');
    await expect(backUp(url, file)).rejects.toThrow(`${file}-wal exists. Name a new file.`);
    const link = `${file}.link`;
    symlinkSync('/nowhere/backup', link);
    await expect(backUp(url, link)).rejects.toThrow(`${link} exists. Name a new file.`);
  });
});

describe('restore', () => {
  it('puts a backup back, keeps the previous files, and forgets the installation id', async () => {
    const { url, path, file } = fresh();
    await within(url, write('installation_id', 'old'));
    await within(url, write('company', 'then'));
    await backUp(url, file);
    await within(url, write('later', 'lost'));
    const previous = await restore(url, file, NOW);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await within(url, settings)).toEqual([['company', 'then']]);
    expect(await within(`file:${previous}`, settings)).toContainEqual(['later', 'lost']);
    expect(await within(`file:${file}`, settings)).toContainEqual(['installation_id', 'old']);
  });

  it('holds back writes that the service may have since the backup', async () => {
    const { url, file } = fresh();
    const facts = { instance_id: 'ins_1', request_hash: 'x', operation: 'x', created_at: 1 };
    const write = (key_hash: string, state: WriteState, is_repeatable: 0 | 1) =>
      ({ ...facts, key_hash, state, is_repeatable }) as const;
    const rows = [
      write('a', 'pending', 0),
      write('b', 'sending', 0),
      write('c', 'pending', 1),
      write('d', 'done', 0),
    ];
    await within(url, (db) => db.insertInto('outbox').values(rows).execute());
    await backUp(url, file);
    await restore(url, file, NOW);
    const states = await within(url, (db) => db.selectFrom('outbox').select('state').orderBy('id').execute());
    expect(states.map(({ state }) => state)).toEqual(['unknown', 'unknown', 'pending', 'done']);
  });

  it('replaces a damaged database, and makes a missing one', async () => {
    const { url, path, file } = fresh();
    await within(url, write('company', 'then'));
    await backUp(url, file);
    writeFileSync(path, 'no database at all'.repeat(1_000));
    const previous = await restore(url, file, NOW);
    expect(readFileSync(previous ?? '', 'utf8')).toContain('no database at all');
    expect(await within(url, settings)).toEqual([['company', 'then']]);
    const elsewhere = fresh();
    expect(await restore(elsewhere.url, file, NOW)).toBeUndefined();
    expect(await within(elsewhere.url, settings)).toEqual([['company', 'then']]);
  });

  it.each([true, false])('follows a link to a file that is there: %s', async (isThere) => {
    const { url, file } = fresh();
    await within(url, write('company', 'then'));
    await backUp(url, file);
    const disk = fresh();
    const link = fresh();
    symlinkSync(disk.path, link.path);
    if (isThere) await within(link.url, write('later', 'lost'));
    const previous = await restore(link.url, file, NOW);
    expect(lstatSync(link.path).isSymbolicLink()).toBe(true);
    expect(await within(disk.url, settings)).toEqual([['company', 'then']]);
    expect(previous?.startsWith(`${disk.path}-before-`)).toBe(isThere ? true : undefined);
  });

  it('takes along the log beside a copied database', async () => {
    const { url, path, file } = fresh();
    await within(url, async (db) => {
      await write('newest', 'in the write-ahead log')(db);
      for (const suffix of ['', '-wal']) copyFileSync(path + suffix, file + suffix);
    });
    await restore(url, file, NOW);
    expect(await within(url, settings)).toContainEqual(['newest', 'in the write-ahead log']);
  });

  it('does nothing while a process has the database open', async () => {
    const { url, file } = fresh();
    await within(url, async (db) => {
      await backUp(url, file);
      await write('later', 'stays')(db);
      await expect(restore(url, file, NOW)).rejects.toThrow(/A process has .* open\. .* Nothing was done\./);
      expect(await settings(db)).toContainEqual(['later', 'stays']);
    });
  });

  it('refuses a backup of a newer version', async () => {
    const { url, file } = fresh();
    await within(url, write('company', 'now'));
    await backUp(url, file);
    const backup = new Sqlite(file);
    backup.exec(`insert into kysely_migration values ('9999-newer', '2030-01-01')`);
    backup.close();
    await expect(restore(url, file, NOW)).rejects.toThrow(
      'a newer version of this app made it. Nothing was done.',
    );
    expect(await within(url, settings)).toEqual([['company', 'now']]);
  });

  it.each([
    ['a text', 'Dear diary, '.repeat(1_000)],
    ['an empty file', ''],
  ])('refuses %s', async (_what, content) => {
    const { url, file } = fresh();
    await within(url, write('company', 'now'));
    writeFileSync(file, content);
    await expect(restore(url, file, NOW)).rejects.toThrow('is no backup that this version can restore');
    expect(await within(url, settings)).toEqual([['company', 'now']]);
  });
});

describe('the commands', () => {
  async function run(url: string, args: string[]) {
    const command = spawnEntry('src/cli.ts', { DATABASE_URL: url, LOG_LEVEL: 'silent' }, { args });
    const { code } = await command.exited;
    return { code, output: command.output() };
  }

  it('say where the backup and the previous database are', async () => {
    const { url, path, file } = fresh();
    await within(url, write('company', 'then'));
    const saved = await run(url, ['backup', file]);
    expect(saved).toMatchObject({ code: 0, output: expect.stringContaining(`backed up in ${file}.`) });
    const restored = await run(url, ['restore', file]);
    expect(restored.code).toBe(0);
    expect(existsSync(/\S+app\.db-before-\w+/.exec(restored.output)?.[0] ?? '')).toBe(true);
    expect(restored.output).toContain(`${path} is restored from ${file}.`);
  });

  it.each([
    ['backup', ['Nothing was backed up', 'pg_dump --format=custom']],
    [
      'restore',
      ['Nothing was restored', 'pg_restore --clean', `delete from settings where name = 'installation_id'`],
    ],
  ])('%s fails on PostgreSQL, and names what to run', async (command, says) => {
    const url = 'postgres://app:hush@db.example:5433/app?sslmode=require&application_name=hush';
    const { code, output } = await run(url, [command, "it's.dump"]);
    expect(code).toBe(1);
    for (const text of [...says, `'postgres://app@db.example:5433/app?sslmode=require'`, `it'\\''s.dump'`])
      expect(output).toContain(text);
    expect(output).not.toContain('hush');
  });
});
