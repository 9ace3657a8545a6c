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
const PROGRAM = 'test/store/migrate-process.ts';
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
  mkdirSync(join(root, 'test/store'), { recursive: true });
  cpSync(join(ROOT, PROGRAM), join(root, PROGRAM));
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

async function run(url: string, root = ROOT, at = 0) {
  const opening = spawnEntry(PROGRAM, {}, { args: [url, String(at)], root });
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

  test('many processes that start at once migrate once', async () => {
    const url = await newDatabaseUrl(kind);
    const at = Date.now() + 2_000;
    const ends = await Promise.all(Array.from({ length: 4 }, () => run(url, ROOT, at)));
    expect(ends).toEqual(Array(4).fill({ code: 0, signal: null, output: 'opened, 0 instances\n' }));
    expect(await done(url)).toEqual(['0001-initial']);
  });

  test('a database without the schema is refused where nothing migrates by itself', async () => {
    const url = await newDatabaseUrl(kind);
    await expect(openDatabase(url, { migrates: false })).rejects.toMatchObject({
      name: 'SchemaError',
      isNewer: false,
      message: expect.stringContaining(
        'lacks migrations of this version (0001-initial): run "npm run migrate"',
      ),
    });
    expect(await hasTable(url, 'instances')).toBe(false);
    await (await openDatabase(url)).destroy();
    await (await openDatabase(url, { migrates: false })).destroy();
  });

  test.each([true, false])('a migration of a newer version is refused (migrates: %s)', async (migrates) => {
    const url = await newDatabaseUrl(kind);
    const db = await openDatabase(url);
    await sql`insert into kysely_migration values ('9000-later', '2030-01-01T00:00:00.000Z')`.execute(db);
    await db.destroy();
    await expect(openDatabase(url, { migrates })).rejects.toMatchObject({
      name: 'SchemaError',
      isNewer: true,
      message: expect.stringContaining('by a newer version of this app (9000-later)'),
    });
  });

  test('a fork’s migrations come behind ours, and later ones of ours behind them', async () => {
    const url = await newDatabaseUrl(kind);
    const opened = { code: 0, output: 'opened, 0 instances\n' };
    expect(await run(url, copyApp({ '0001-remarks': REMARKS }))).toMatchObject(opened);
    expect([await done(url, 'fork_migration'), await hasTable(url, 'remarks')]).toEqual([
      ['0001-remarks'],
      true,
    ]);
    expect(await run(url, copyApp({ '0001-remarks': REMARKS }, true))).toMatchObject(opened);
    expect(await done(url)).toEqual(['0001-initial', '9000-later']);
    // Who lacks either stands aside.
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
    expect(await run(url)).toMatchObject({ code: 0 });
  });
});
