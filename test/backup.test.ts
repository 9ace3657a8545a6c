import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Database } from '../src/store/database.ts';
import { openDatabase } from '../src/store/open-database.ts';
import { keepSetting } from '../src/store/settings.ts';
import { spawnEntry } from './support/spawn-entry.ts';
import { tempDir } from './support/temp-dir.ts';

async function run(url: string, args: string[]) {
  const command = spawnEntry('src/cli.ts', { DATABASE_URL: url, LOG_LEVEL: 'silent' }, { args });
  const { code } = await command.exited;
  return { code, output: command.output() };
}

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

const keptIn = (output: string) => /\S+app\.db-before-\w+/.exec(output)?.[0] ?? '';

describe('backup', () => {
  it('copies what is committed while a process has the database open', async () => {
    const { url, file } = fresh();
    await within(url, async (db) => {
      await write('newest', 'in the write-ahead log')(db);
      expect(await run(url, ['backup', file])).toMatchObject({
        code: 0,
        output: expect.stringContaining(file),
      });
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await within(`file:${file}`, settings)).toContainEqual(['newest', 'in the write-ahead log']);
  });

  it('overwrites no file, and makes none without a database', async () => {
    const { url, file } = fresh();
    const without = await run(url, ['backup', file]);
    expect(without).toMatchObject({ code: 1, output: expect.stringContaining('There is no database in') });
    await within(url, write('a', 'b'));
    writeFileSync(file, 'dear');
    expect(await run(url, ['backup', file])).toMatchObject({
      code: 1,
      output: expect.stringContaining('exists. Name a new file. Nothing was done.'),
    });
    expect(readFileSync(file, 'utf8')).toBe('dear');
  });
});

describe('restore', () => {
  it('puts a backup back, keeps the files from before, and forgets the installation id', async () => {
    const { url, path, file } = fresh();
    await within(url, write('installation_id', 'old'));
    await within(url, write('company', 'then'));
    await run(url, ['backup', file]);
    await within(url, write('later', 'lost'));
    const { code, output } = await run(url, ['restore', file]);
    expect(code).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await within(url, settings)).toEqual([['company', 'then']]);
    expect(await within(`file:${keptIn(output)}`, settings)).toContainEqual(['later', 'lost']);
    expect(await within(`file:${file}`, settings)).toContainEqual(['installation_id', 'old']);
  });

  it('takes the place of a damaged database, and of none', async () => {
    const { url, path, file } = fresh();
    await within(url, write('company', 'then'));
    await run(url, ['backup', file]);
    writeFileSync(path, 'no database at all'.repeat(1_000));
    const { code, output } = await run(url, ['restore', file]);
    expect(code).toBe(0);
    expect(readFileSync(keptIn(output), 'utf8')).toContain('no database at all');
    expect(await within(url, settings)).toEqual([['company', 'then']]);
    const elsewhere = fresh();
    expect(await run(elsewhere.url, ['restore', file])).toMatchObject({
      code: 0,
      output: expect.not.stringContaining('from before'),
    });
    expect(await within(elsewhere.url, settings)).toEqual([['company', 'then']]);
  });

  it('does nothing while a process has the database open', async () => {
    const { url, file } = fresh();
    await within(url, async (db) => {
      await run(url, ['backup', file]);
      await write('later', 'stays')(db);
      expect(await run(url, ['restore', file])).toMatchObject({
        code: 1,
        output: expect.stringMatching(/A process has .* open\. .* Nothing was done\./),
      });
      expect(await settings(db)).toContainEqual(['later', 'stays']);
    });
  });

  it('refuses a backup of a newer version', async () => {
    const { url, file } = fresh();
    await within(url, write('company', 'now'));
    await run(url, ['backup', file]);
    const backup = new Sqlite(file);
    backup.exec(`insert into kysely_migration values ('9999-newer', '2030-01-01')`);
    backup.close();
    expect(await run(url, ['restore', file])).toMatchObject({
      code: 1,
      output: expect.stringContaining('a newer version of this app made it. Nothing was done.'),
    });
    expect(await within(url, settings)).toEqual([['company', 'now']]);
  });

  it.each([
    ['a text', 'Dear diary, '.repeat(1_000)],
    ['an empty file', ''],
  ])('refuses %s', async (_what, content) => {
    const { url, file } = fresh();
    await within(url, write('company', 'now'));
    writeFileSync(file, content);
    expect(await run(url, ['restore', file])).toMatchObject({
      code: 1,
      output: expect.stringContaining('is no backup that this version can restore'),
    });
    expect(await within(url, settings)).toEqual([['company', 'now']]);
  });
});

it.each([
  ['backup', ['pg_dump --format=custom']],
  ['restore', ['pg_restore --clean', `delete from settings where name = 'installation_id'`]],
])('%s names what to run on PostgreSQL, without the password', async (command, says) => {
  const url = 'postgres://app:hush@db.example:5433/app?sslmode=require&application_name=hush';
  const { code, output } = await run(url, [command, "it's.dump"]);
  expect(code).toBe(0);
  for (const text of [...says, `'postgres://app@db.example:5433/app?sslmode=require'`, `it'\\''s.dump'`])
    expect(output).toContain(text);
  expect(output).not.toContain('hush');
});
