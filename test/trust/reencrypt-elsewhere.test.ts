import { createHash } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { makeFirstSchema } from '../store/first-schema.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { newKey, openEncrypted, tokenKeysValue } from './encrypted-tokens.ts';

// Processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const KEYS = [newKey('new'), newKey('old')];

function reencrypt(path: string) {
  return spawnEntry('src/reencrypt.ts', { DATABASE_URL: `file:${path}`, TOKEN_KEYS: tokenKeysValue(KEYS) });
}

/** Every file of a directory, with its rights, its bytes, and when it was written. */
function stateOf(dir: string) {
  return readdirSync(dir)
    .sort()
    .map((name) => {
      const { mode, mtimeMs } = statSync(join(dir, name));
      const content = createHash('sha256').update(readFileSync(join(dir, name)));
      return { name, mode, mtimeMs, content: content.digest('hex') };
    });
}

/** Makes the file of another program, by statements. */
function makeOther(path: string, journal: string, statements: string): void {
  const db = new Sqlite(path);
  db.pragma(`journal_mode = ${journal}`);
  db.exec(statements);
  db.close();
}

const SHOP = 'create table orders (id integer); insert into orders values (7)';
const SIMILAR = `
  create table instances (id text); create table tokens (id text); create table runs (id text);
  create table records (id text); create table kysely_migration (name text);
  insert into kysely_migration values ('2020-first')`;

const OTHERS: [string, (path: string) => void, RegExp][] = [
  ['a database of another program', (path) => makeOther(path, 'delete', SHOP), /another program's/],
  ['one that has a log', (path) => makeOther(path, 'wal', SHOP), /another program's/],
  [
    'one that was killed, and has a log that is not copied yet',
    (path) => {
      const made = `${dirname(path)}-made`;
      mkdirSync(made);
      const db = new Sqlite(join(made, 'app.db'));
      db.pragma('journal_mode = wal');
      db.exec(SHOP);
      // As it stands now, with its log.
      cpSync(made, dirname(path), { recursive: true });
      db.close();
    },
    /another program's/,
  ],
  ['one with tables of the same names', (path) => makeOther(path, 'delete', SIMILAR), /another program's/],
  ['an empty one', (path) => makeOther(path, 'wal', ''), /another program's/],
  [
    'a text',
    (path) => writeFileSync(path, 'Notes of somebody, which are no database.\n'),
    /no SQLite database/,
  ],
  ['a short text', (path) => writeFileSync(path, 'x'), /no SQLite database/],
];

test.each(OTHERS)('where the database should be and %s is, nothing is changed', async (_what, make, says) => {
  const dir = join(tempDir(), 'data');
  mkdirSync(dir);
  const path = join(dir, 'app.db');
  make(path);
  for (const name of readdirSync(dir)) chmodSync(join(dir, name), 0o644);
  const before = stateOf(dir);
  const started = reencrypt(path);
  expect((await started.exited).code).toBe(1);
  expect(started.output()).toMatch(says);
  expect(started.output()).toContain(`in ${path}`);
  expect(started.output()).toMatch(/set DATABASE_URL to .*Nothing was done\./);
  const after = stateOf(dir);
  // What others read a log with is theirs to share: it may be written by who reads.
  const kept = (state: typeof before) => state.filter(({ name }) => !name.endsWith('-shm'));
  expect(kept(after)).toEqual(kept(before));
  expect(after.map(({ name, mode }) => [name, mode])).toEqual(before.map(({ name, mode }) => [name, mode]));
});

test('a directory is no database either', async () => {
  const dir = tempDir();
  const started = reencrypt(dir);
  expect((await started.exited).code).toBe(1);
  expect(started.output()).toContain(`There is no database in ${dir}`);
});

test('a database of an older version of the app is not migrated, and it says what to do', async () => {
  const path = join(tempDir(), 'app.db');
  await makeFirstSchema(path, []);
  const started = reencrypt(path);
  expect((await started.exited).code).toBe(1);
  expect(started.output()).toMatch(
    /of an older version.*Start the app of this version first.*Nothing was changed/s,
  );
  const left = new Sqlite(path, { readonly: true });
  expect(left.prepare('select name from kysely_migration').pluck().all()).toEqual(['0001-initial']);
  left.close();
});

test('a database that others have open is taken', async () => {
  const { url } = await openEncrypted(3, KEYS[1] ?? newKey('old'));
  const started = reencrypt(url.replace('file:', ''));
  expect((await started.exited).code, started.output()).toBe(0);
  expect(started.output()).toMatch(/the tokens of 3 instances/);
});
