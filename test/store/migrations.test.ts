import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { isKnownMigration, migrate } from '../../src/store/migrate.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { UNSTARTED } from '../../src/store/run-start.ts';
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
  await sql`delete from kysely_migration where name > '0002'`.execute(db);
  const before = await describe(db);
  await expect(openDatabase(url)).rejects.toThrow(/^The migration 0002-hashes failed: .*already exists/);
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

test('a database that lacks a migration in the middle, as one made while they were written, gets it', async () => {
  const url = `file:${tempDir()}/app.db`;
  const made = await openDatabase(url);
  const before = await describe(made);
  await sql`drop table key_checks`.execute(made);
  await sql`delete from kysely_migration where name = '0007-key-checks'`.execute(made);
  await made.destroy();
  const db = await openDatabase(url);
  const after = await describe(db);
  expect(after.schema).toEqual(before.schema);
  expect(after.done.length).toBe(before.done.length);
  await db.destroy();
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

test('ranges of a run under way that overlap or touch become one', async () => {
  const db = await openDatabase(`file:${tempDir()}/app.db`);
  // As it was before them.
  await sql`drop table in_doubt`.execute(db);
  await sql`alter table instances drop column access_generation`.execute(db);
  await sql`alter table runs drop column behind_since`.execute(db);
  await sql`delete from kysely_migration where name between '0009' and '9'`.execute(db);
  await sql`insert into seen_ranges (list, first, last) values
    (1, 2, 4), (1, 4, 6), (1, 5, 5), (1, 7, 9), (1, 11, 12), (2, 1, 20), (2, 3, 4), (2, 22, 22)`.execute(db);
  await migrate(db);
  const { rows } = await sql`select list, first, last from seen_ranges order by list, first`.execute(db);
  expect(rows).toEqual([
    { list: 1, first: 2, last: 9 },
    { list: 1, first: 11, last: 12 },
    { list: 2, first: 1, last: 20 },
    { list: 2, first: 22, last: 22 },
  ]);
  await db.destroy();
});

test('notes of records in doubt from before are kept, as of nobody who tells now', async () => {
  const db = await openDatabase(`file:${tempDir()}/app.db`);
  // As it was before them.
  await sql`drop table in_doubt`.execute(db);
  await sql`create table in_doubt (list integer not null, id text not null, is_known integer not null,
    primary key (list, id)) without rowid`.execute(db);
  await sql`alter table runs drop column behind_since`.execute(db);
  await sql`delete from kysely_migration where name between '0012' and '9'`.execute(db);
  await sql`insert into in_doubt (list, id, is_known) values (1, 'a', 0), (2, 'a', 1)`.execute(db);
  await migrate(db);
  expect((await sql`select * from in_doubt order by list`.execute(db)).rows).toEqual([
    { list: 1, id: 'a', fence: 0, is_known: 0 },
    { list: 2, id: 'a', fence: 0, is_known: 1 },
  ]);
  await db.destroy();
});

test('lists that are under way or have failed are behind since their last start', async () => {
  const db = await openDatabase(`file:${tempDir()}/app.db`);
  await db
    .insertInto('instances')
    .values({ id: 'ins_1', company_id: null, name: 'Kept', status: 'active', notice: null, installed_at: 1 })
    .execute();
  const run = { ...UNSTARTED, instance_id: 'ins_1' };
  await db
    .insertInto('runs')
    .values([
      { ...run, resource: 'a', started_at: 1, finished_at: 2 },
      { ...run, resource: 'b', state: 'failed', started_at: 3, finished_at: 4 },
      { ...run, resource: 'c', state: 'running', started_at: 5 },
      { ...run, resource: 'd', state: 'failed', finished_at: 6 },
    ])
    .execute();
  // As it was before them.
  await sql`alter table runs drop column behind_since`.execute(db);
  await sql`delete from kysely_migration where name between '0013' and '9'`.execute(db);
  await migrate(db);
  const rows = await db.selectFrom('runs').select('behind_since').orderBy('resource').execute();
  expect(rows.map(({ behind_since }) => behind_since)).toEqual([null, 3, 5, 6]);
  await db.destroy();
});
