import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { Database } from '../../src/store/database.ts';
import { openPostgres } from '../../src/store/dialect/postgres.ts';
import { openSqlite } from '../../src/store/dialect/sqlite.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { tempDir } from '../support/temp-dir.ts';
import { DATABASES, newDatabaseUrl } from './test-store.ts';

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
  mkdirSync(dir, { recursive: true });
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
      }>`select name from ${sql.table(table)} order by timestamp`.execute(db);
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
    await openWith(copyApp({ '0001-remarks': REMARKS }, true), url);
    expect(await done(url)).toEqual(['0001-initial', '9000-later']);
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
});
