import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { describe, expect, test } from 'vitest';
import { Database } from '../../src/store/database.ts';
import { openPostgres } from '../../src/store/dialect/postgres.ts';
import { openSqlite } from '../../src/store/dialect/sqlite.ts';
import { DueListStore } from '../../src/store/due-lists.ts';
import { up as initial } from '../../src/store/migrations/0001-initial.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { PageStore } from '../../src/store/pages.ts';
import { RunStore } from '../../src/store/runs.ts';
import { tempDir } from '../support/temp-dir.ts';
import { OLD_ROWS, PAGE_2, rowsOf } from './rows.ts';
import { DATABASES, NOW, newDatabaseUrl, pageOf } from './test-store.ts';

const ROOT = join(import.meta.dirname, '../..');
const REMARKS =
  "export const up = (db) => db.schema.createTable('remarks').addColumn('id', 'text').execute();";
const BROKEN =
  "export const up = async (db) => { await db.schema.createTable('half').addColumn('id', 'text').execute(); throw new Error('broken half-way'); };";

/** A copy of the app with migrations of a fork, by their names, and perhaps a later one of ours. */
function copyApp(ofFork: Record<string, string>, hasLater = false): string {
  const root = tempDir();
  cpSync(join(ROOT, 'src'), join(root, 'src'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const dir = join(root, 'src/integration/migrations');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir);
  for (const [name, source] of Object.entries(ofFork)) writeFileSync(join(dir, `${name}.ts`), source);
  if (hasLater) {
    const file = join(root, 'src/store/migrate.ts');
    const first = "'0001-initial': {";
    const later = `'9000-later': { up: (db) => db.schema.createTable('later').addColumn('id', 'text').execute() }, ${first}`;
    writeFileSync(file, readFileSync(file, 'utf8').replace(first, later));
  }
  return root;
}

/** Opens a database with a copy of the app, and closes it. */
async function openWith(root: string, url: string): Promise<void> {
  const copy: { openDatabase: typeof openDatabase } = await import(join(root, 'src/store/open-database.ts'));
  await (await copy.openDatabase(url)).destroy();
}

describe.each(DATABASES)('on %s', (kind) => {
  /** Without looking at its schema. */
  const open = (url: string) =>
    new Database(kind === 'sqlite' ? openSqlite(url) : openPostgres(url, () => undefined));
  async function look<Value>(url: string, work: (db: Database) => Promise<Value>): Promise<Value> {
    const db = open(url);
    return work(db).finally(() => db.destroy());
  }
  const done = (url: string, table = 'kysely_migration') =>
    look(url, async (db) => {
      const { rows } = await sql<{
        name: string;
      }>`select name from ${sql.table(table)} order by timestamp, name`.execute(db);
      return rows.map(({ name }) => name);
    });
  const hasTable = (url: string, table: string) =>
    look(url, async (db) => (await db.introspection.getTables()).some(({ name }) => name === table));

  test('a fork’s migrations come after ours, and later ones of ours after them', async () => {
    const url = await newDatabaseUrl(kind);
    await openWith(copyApp({ '0001-remarks': REMARKS }), url);
    expect([await done(url, 'fork_migration'), await hasTable(url, 'remarks')]).toEqual([
      ['0001-remarks'],
      true,
    ]);
    const first = await done(url);
    await openWith(copyApp({ '0001-remarks': REMARKS }, true), url);
    expect(await done(url)).toEqual([...first, '9000-later']);
    await expect(openDatabase(url)).rejects.toThrow('newer version of this app (9000-later)');
  });

  test('the error names a migration that fails, and SQLite keeps nothing of it', async () => {
    const url = await newDatabaseUrl(kind);
    const opening = openWith(copyApp({ '0001-broken': BROKEN }), url);
    await expect(opening).rejects.toThrow('The migration 0001-broken failed: broken half-way');
    expect([await hasTable(url, 'half'), await hasTable(url, 'instances')]).toEqual([
      false,
      kind === 'postgres',
    ]);
    await (await openDatabase(url)).destroy();
  });

  test('a database of the first schema loses nothing, and its lists go on', async () => {
    const url = await newDatabaseUrl(kind);
    const before = await look(url, async (old) => {
      const first = { up: (to: Kysely<unknown>) => initial(to, old.dialect) };
      const provider = { getMigrations: async () => ({ '0001-initial': first }) };
      await new Migrator({ db: old, provider }).migrateToLatest();
      for (const statement of OLD_ROWS.split(';')) await sql.raw(statement).execute(old);
      await old.dialect.search.write(old, [{ record: 1, words: ['ada'] }]);
      return rowsOf(old);
    });
    expect(Object.keys(before)).toHaveLength(15);

    const db = await openDatabase(url);
    const runs = new RunStore(db);
    const after = await rowsOf(db);
    for (const [table, rows] of Object.entries(before)) {
      expect([rows.length > 0, after[table]?.length], table).toEqual([true, rows.length]);
      expect(after[table], table).toEqual(
        expect.arrayContaining(rows.map((row) => expect.objectContaining(row))),
      );
    }
    const lists = await db.selectFrom('lists').selectAll().orderBy('id').execute();
    const none = { full_run: null, full_at: null, checked_at: null, missing: 0, held: 0, held_run: null };
    const read = { ...none, held_since: null, check_due_at: null, full_due_at: 0, fence: 0 };
    expect(lists).toMatchObject([
      {
        ...{ ...read, full_run: 2, full_at: 300, checked_at: 300, due_at: 0 },
        ...{ missing: 7, held: 7, held_run: 2, held_since: 300 },
      },
      { ...read, due_at: 0 },
      { ...read, full_run: 5, full_at: 200, checked_at: 200, due_at: null },
      { ...read, full_run: 6, full_at: 300, checked_at: 300, due_at: null },
      ...Array(3).fill({ ...read, due_at: null }),
    ]);
    const kinds = await db.selectFrom('runs').select(['kind', 'missing', 'behind']).execute();
    expect(kinds).toEqual(Array(9).fill({ kind: 'full', missing: 0, behind: null }));

    const pages = new PageStore(db);
    const end = { missing: 0, held: 0, heldRun: null, isRepeated: false, requests: 0, refused: 0 };
    const next = { full_due_at: NOW + 9, check_due_at: NOW + 5, check_every: 1 };
    for (const [resource, id, cursor] of [
      ['contacts', 10, null] as const,
      ['conversations', 4, PAGE_2] as const,
    ]) {
      await runs.start('ins_a', [resource], NOW);
      const { claim, run } =
        (await runs.claim({ instanceId: 'ins_a', resource }, NOW)) ?? expect.unreachable();
      expect(run).toMatchObject({ id, cursor });
      expect(await pages.commit(claim, cursor, pageOf(['{"id":"d"}']), NOW, 20)).toMatchObject({
        hasChanges: true,
      });
      expect(await runs.finish(claim, end, next, NOW)).toMatchObject({ id, state: 'finished' });
    }
    expect(await new DueListStore(db).takeDue(['contacts', 'conversations'], NOW + 5, 9)).toHaveLength(2);
    await db.destroy();
  });
});
