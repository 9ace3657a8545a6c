import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { isKnownMigration, migrate } from '../../src/store/migrate.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { addMigration, copyApp, makeNextVersion, NEXT_MIGRATION } from '../trust/next-version.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The names of all migrations, by their files. */
const NAMES = readdirSync(join(ROOT, 'src/store/migrations')).map((file) => file.replace(/\.ts$/, ''));

/** Everything that the schema consists of, and what the migrations keep of themselves. */
async function describe(db: Database) {
  const { rows: schema } = await sql`select type, name, sql from sqlite_master order by name`.execute(db);
  const { rows: done } = await sql`select * from kysely_migration order by name`.execute(db);
  return { schema, done };
}

test('migrating again changes nothing, and keeps what is there', async () => {
  const url = `file:${tempDir()}/app.db`;
  const first = await openDatabase(url);
  await first
    .insertInto('instances')
    .values({ id: 'ins_1', company_id: null, name: 'Kept', status: 'active', notice: null, installed_at: 1 })
    .execute();
  const before = await describe(first);
  await migrate(first);
  expect(await describe(first)).toEqual(before);
  await first.destroy();

  const second = await openDatabase(url);
  expect(await describe(second)).toEqual(before);
  expect((await second.selectFrom('instances').selectAll().execute()).map(({ name }) => name)).toEqual([
    'Kept',
  ]);
  await second.destroy();
});

test('a database that cannot be migrated is left as it was, and says so', async () => {
  const url = `file:${tempDir()}/app.db`;
  const db = await openDatabase(url);
  await sql`delete from kysely_migration`.execute(db);
  const before = await describe(db);
  await expect(migrate(db)).rejects.toThrow(/^The migration 0001-initial failed: .*already exists/);
  expect(await describe(db)).toEqual(before);
  await db.destroy();
});

test('every migration is in its place, under a name that no fork’s can have', () => {
  expect(NAMES).toContain('0001-initial');
  for (const name of NAMES) {
    expect(name).toMatch(/^(?:\d{4}|fork)-/);
    expect(isKnownMigration(name), name).toBe(true);
  }
});

/** Behind those that this fork may have. */
const FORK_MIGRATION = 'fork-9999-remarks';

/** Adds a migration to a copy of the app, and a program that opens a database with it. */
function fork(root: string): string {
  addMigration(root, {
    name: FORK_MIGRATION,
    as: 'ofFork',
    source: "export const up = (db) => db.schema.createTable('remarks').addColumn('id', 'text').execute();",
  });
  cpSync(join(ROOT, 'test/store'), join(root, 'test/store'), { recursive: true });
  return root;
}

test('a database with a fork’s migration gets a later one of ours; who lacks either stands aside', async () => {
  const url = `file:${tempDir()}/app.db`;
  const open = async (root: string) => {
    const opening = spawnEntry('test/store/migrate-process.ts', {}, { args: [url, '0'], root });
    return { ...(await opening.exited), output: opening.output() };
  };
  const before = fork(copyApp());
  expect(await open(before)).toMatchObject({ code: 0, output: 'opened, 0 instances\n' });
  const db = new Sqlite(url.replace('file:', ''));
  const done = () => db.prepare('select name from kysely_migration order by rowid').pluck().all();
  const known = done();
  expect(known.at(-1)).toBe(FORK_MIGRATION);
  // Taken out again, it is missing.
  await expect(openDatabase(url)).rejects.toThrow(
    `newer version of this app (${FORK_MIGRATION}), which this version does not know`,
  );

  const after = fork(makeNextVersion({ migrates: true }));
  expect(await open(after)).toMatchObject({ code: 0, output: 'migrating\nopened, 0 instances\n' });
  expect(done()).toEqual([...known, NEXT_MIGRATION]);
  expect(await open(after)).toMatchObject({ code: 0, output: 'opened, 0 instances\n' });
  const late = await open(before);
  expect(late.code).toBe(1);
  expect(late.output).toContain(`newer version of this app (${NEXT_MIGRATION})`);
  expect(done()).toEqual([...known, NEXT_MIGRATION]);
  db.close();
});

test('what may not be lost is on the disk when it is written; readers do not wait; parents are kept', async () => {
  const db = await openDatabase(`file://${tempDir()}/app.db`);
  const pragma = async (name: string) =>
    Object.values((await sql.raw(`pragma ${name}`).execute(db)).rows[0] ?? {})[0];
  expect(await pragma('journal_mode')).toBe('wal');
  expect(await pragma('synchronous')).toBe(1);
  expect(await pragma('foreign_keys')).toBe(1);
  await db.destroy();
});
