import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { Database } from '../../src/store/database.ts';
import { openPostgres } from '../../src/store/dialect/postgres.ts';
import { openSqlite } from '../../src/store/dialect/sqlite.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { DATABASES, newDatabaseUrl } from './test-store.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = 'open.ts';
const SOURCE =
  "import { openDatabase } from './src/store/open-database.ts'; await (await openDatabase(process.argv[2])).destroy();";
const REMARKS =
  "export const up = (db) => db.schema.createTable('remarks').addColumn('id', 'text').execute();";
const BROKEN =
  "export const up = async (db) => { await db.schema.createTable('half').addColumn('id', 'text').execute(); throw new Error('broken half-way'); };";

/** A copy of the app with migrations of a fork, by their names, and perhaps a later one of ours. */
function copyApp(ofFork: Record<string, string>, hasLater = false): string {
  const root = tempDir();
  cpSync(join(ROOT, 'src'), join(root, 'src'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(root, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, PROGRAM), SOURCE);
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

/** Opens a database with a copy of the app. */
async function run(url: string, root: string) {
  const opening = spawnEntry(PROGRAM, {}, { args: [url], root });
  return { ...(await opening.exited), output: opening.output() };
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

  test('a fork’s migrations come behind ours, and later ones of ours behind them', async () => {
    const url = await newDatabaseUrl(kind);
    const opened = { code: 0, output: '' };
    expect(await run(url, copyApp({ '0001-remarks': REMARKS }))).toMatchObject(opened);
    expect([await done(url, 'fork_migration'), await hasTable(url, 'remarks')]).toEqual([
      ['0001-remarks'],
      true,
    ]);
    expect(await run(url, copyApp({ '0001-remarks': REMARKS }, true))).toMatchObject(opened);
    expect(await done(url)).toEqual(['0001-initial', '9000-later']);
    await expect(openDatabase(url)).rejects.toThrow('newer version of this app (9000-later)');
  });

  test('a migration that fails is named, and on SQLite nothing has changed', async () => {
    const url = await newDatabaseUrl(kind);
    const { code, output } = await run(url, copyApp({ '0001-broken': BROKEN }));
    expect([code, output]).toEqual([
      1,
      expect.stringContaining('The migration 0001-broken failed: broken half-way'),
    ]);
    expect([await hasTable(url, 'half'), await hasTable(url, 'instances')]).toEqual([
      false,
      kind === 'postgres',
    ]);
    await (await openDatabase(url)).destroy();
  });
});
