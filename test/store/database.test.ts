import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { describe, expect, inject, test } from 'vitest';
import { type Database, statement, together } from '../../src/store/database.ts';
import { openDatabase, openExistingDatabase } from '../../src/store/open-database.ts';
import type { Schema } from '../../src/store/schema.ts';
import { runStatement } from '../support/postgres-server.ts';
import { tempDir } from '../support/temp-dir.ts';
import { DATABASES, newDatabaseUrl, openTestStore } from './test-store.ts';

/** Whether a transaction waits for the disk. */
async function waitsForDisk(db: Database, transaction: Kysely<Schema>): Promise<boolean> {
  if (db.dialect.name === 'sqlite') {
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(transaction);
    return rows[0]?.synchronous === 2;
  }
  const { rows } = await sql<{ synchronous_commit: string }>`show synchronous_commit`.execute(transaction);
  return rows[0]?.synchronous_commit === 'on';
}

describe.each(DATABASES)('on %s', async (kind) => {
  const { db, url, waitForLocks } = await openTestStore(kind);
  const add = (transaction: Kysely<Schema>, name: string) =>
    transaction.insertInto('settings').values({ name, value: '1' }).execute();
  const names = async () =>
    (await db.selectFrom('settings').select('name').execute()).map(({ name }) => name);

  test('durable transactions wait for the disk, and others do not', async () => {
    const seen: boolean[] = [];
    const look = async (transaction: Kysely<Schema>) => void seen.push(await waitsForDisk(db, transaction));
    await db.transact(look);
    await db.durably(look);
    await db.durably(async () => Promise.reject(new Error('broken'))).catch(() => undefined);
    await db.transact(look);
    expect(seen).toEqual([false, true, false]);
  });

  test('a transaction that throws writes nothing', async () => {
    const broken = async (transaction: Kysely<Schema>) => {
      await add(transaction, 'broken');
      throw new Error('It broke.');
    };
    await expect(db.transact(broken)).rejects.toThrow('It broke.');
    await expect(db.durably(broken)).rejects.toThrow('It broke.');
    await db.transact((transaction) => add(transaction, 'works'));
    expect(await names()).toEqual(['works']);
  });

  test('statements together: each sees what was committed before it, and after an error none counts', async () => {
    const text = 'select value from settings where name = :name and value <> :name';
    const read = statement<{ value: string }>(db.dialect, text);
    const lock = statement<{ value: string }>(
      db.dialect,
      `${text} ${kind === 'postgres' ? 'for update' : ''}`,
    );
    const insert = statement(db.dialect, 'insert into settings (name, value) values (:name, :value)');
    for (const name of ['first', 'second']) await db.transact((tx) => add(tx, name));
    const [locked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = db.transact(async (tx) => {
      await tx.updateTable('settings').set({ value: '2' }).where('name', 'in', ['first', 'second']).execute();
      locked.resolve();
      await go.promise;
    });
    await locked.promise;
    const both = db.transact((tx) =>
      together<[{ value: string }, { value: string }]>(db, tx, [
        lock({ name: 'first' }),
        read({ name: 'second' }),
      ]),
    );
    if (kind === 'postgres') await waitForLocks(1);
    go.resolve();
    await other;
    expect((await both).map(({ rows }) => rows[0]?.value)).toEqual(['2', '2']);

    const broken = [insert({ name: 'third', value: '1' }), insert({ name: 'first', value: '1' })];
    await expect(
      db.transact((tx) => together(db, tx, [...broken, read({ name: 'third' })])),
    ).rejects.toThrow();
    expect(() => read({ title: 'third' })).toThrow('A statement has no value for name.');
    expect(await names()).not.toContain('third');
  });

  test('transactions in each other’s way are tried again', async () => {
    for (const name of ['a', 'b']) await db.transact((transaction) => add(transaction, name));
    const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    let tries = 0;
    const write = (order: readonly string[], own: number) =>
      db.transact(async (transaction) => {
        tries++;
        for (const name of order) {
          await transaction
            .updateTable('settings')
            .set({ value: String(own) })
            .where('name', '=', name)
            .execute();
          both[own as 0 | 1].resolve();
          // SQLite has one writer at a time.
          if (kind === 'postgres') await Promise.all(both.map(({ promise }) => promise));
        }
      });
    await Promise.all([write(['a', 'b'], 0), write(['b', 'a'], 1)]);
    expect(tries).toBe(kind === 'postgres' ? 3 : 2);
  });

  test('work that waits for a connection is late, and no outage', async () => {
    if (kind === 'sqlite') return expect(db.dialect.name).toBe('sqlite');
    const few = await openDatabase(url, { connections: 2 });
    const seconds = 6;
    const slow = () => sql`select pg_sleep(${sql.lit(seconds)})`.execute(few);
    const quick = sql`select 1`.execute(few);
    await Promise.all([quick, slow(), slow(), few.transact((tx) => sql`select 1`.execute(tx))]);
    await few.destroy();
  });

  test('a text with a NUL, as in an address, is stored', async () => {
    await db.transact((transaction) => add(transaction, 'a\0b'));
    const found = db.selectFrom('settings').select('value').where('name', '=', 'a\0b');
    expect(await found.execute()).toEqual([{ value: '1' }]);
  });

  test('a write waits for the write of another process', async () => {
    const other = await openDatabase(url);
    const [started, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const write = (value: string) => (transaction: Kysely<Schema>) =>
      transaction.updateTable('settings').set({ value }).where('name', '=', 'works').execute();
    const blocking = other.transact(async (transaction) => {
      await write('first')(transaction);
      started.resolve();
      await done.promise;
    });
    await started.promise;
    const waiting = db.transact(write('second'));
    // By then SQLite has refused the first try.
    for (let turns = 0; turns < 5; turns++) await setImmediate();
    done.resolve();
    await Promise.all([blocking, waiting]);
    const row = db.selectFrom('settings').select('value').where('name', '=', 'works');
    expect(await row.execute()).toEqual([{ value: 'second' }]);
    await other.destroy();
  });

  if (kind === 'sqlite') {
    test('after an error that ends the transaction, as of a full disk, no statement follows', async () => {
      await sql`create trigger broken before insert on settings when new.name = 'broken'
        begin select raise(rollback, 'It is full.'); end`.execute(db);
      const insert = statement(db.dialect, "insert into settings (name, value) values (:name, '1')");
      const work = db.transact((tx) =>
        together(
          db,
          tx,
          ['before', 'broken', 'after'].map((name) => insert({ name })),
        ),
      );
      await expect(work).rejects.toThrow('It is full.');
      for (const name of ['before', 'after']) expect(await names()).not.toContain(name);
    });
  }

  if (kind === 'postgres') {
    test('a broken connection fails its transaction alone', async () => {
      const broken = db.transact(async (transaction) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(transaction);
        await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(db);
        await expect.poll(() => add(transaction, 'late').catch(({ name }) => name)).toBe('StoreError');
      });
      await expect(broken).rejects.toMatchObject({ name: 'StoreError' });
      expect(await names()).not.toContain('late');
    });

    test('a transaction has its settings, and leaves none to the session, which may be another one’s', async () => {
      const settings = async (on: Kysely<Schema>) => {
        const names = ['synchronous_commit', 'lock_timeout'].map((name) => sql`current_setting(${name})`);
        const { rows } = await sql<{ all: string }>`select concat_ws(' ', ${sql.join(names)}) as all`.execute(
          on,
        );
        return rows[0]?.all;
      };
      expect(await db.transact(settings)).toBe('off 10s');
      expect(await db.durably(settings)).toBe('on 10s');
      expect(await settings(db)).toBe('on 0');
    });

    test('a statement ends in time where handlers run', async () => {
      // The limit holds for the statements of the start, too, which a busy machine must get done.
      const limited = await openDatabase(url, { statementsMs: 3_000 });
      await expect(sql`select pg_sleep(60)`.execute(limited)).rejects.toThrow('statement timeout');
      await limited.destroy();
    });
  }
});

test('a command makes no database', async () => {
  const path = join(tempDir(), 'none.db');
  await expect(openExistingDatabase(`file:${path}`)).rejects.toThrow(`There is no database in ${path}`);
});

test('the error names a lock of another process', async () => {
  const { db, url } = await openTestStore('sqlite');
  const other = new Sqlite(url.replace('file:', ''));
  other.exec('begin immediate');
  await expect(db.check()).rejects.toMatchObject({
    name: 'StoreError',
    message: expect.stringContaining('another process keeps it locked'),
  });
  other.exec('rollback');
  other.close();
  await db.check();
});

const onPostgres = test.runIf(DATABASES.includes('postgres'));

onPostgres('a server that takes no writes is no healthy one, and its sessions end with that', async () => {
  const { db, url } = await openTestStore('postgres');
  const name = new URL(url).pathname.slice(1);
  const setReadOnly = (value: string) =>
    runStatement(url, `alter database ${name} set default_transaction_read_only = ${value}`);
  const disconnect = () =>
    runStatement(
      inject('postgresUrl'),
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
  await db.check();
  await setReadOnly('on');
  await disconnect();
  await expect.poll(() => db.check().catch(({ message }) => message)).toContain('it takes no writes');
  await runStatement(inject('postgresUrl'), `alter database ${name} set default_transaction_read_only = off`);
  await expect.poll(() => db.check()).toBeUndefined();
});

onPostgres('a statement that the server ends, and too many clients, are told as what they are', async () => {
  const { url } = await openTestStore('postgres');
  const role = `few_${new URL(url).pathname.slice(6)}`;
  const ask = (statement: string) => runStatement(inject('postgresUrl'), statement);
  await ask(`create role ${role} login superuser connection limit 1`);
  await ask(`alter role ${role} set statement_timeout = 300`);
  const limited = new URL(url);
  limited.username = role;
  const db = await openDatabase(limited.href, { connections: 1 });
  await expect(sql`select pg_sleep(9)`.execute(db)).rejects.toThrow('statement_timeout of the server');
  await db.destroy();
  await ask(`alter role ${role} nosuperuser connection limit 0`);
  await expect(openDatabase(limited.href)).rejects.toThrow('it has no connections left');
  await ask(`drop role ${role}`);
});

onPostgres.each(['LATIN1', 'SQL_ASCII'])(
  'a database in %s is refused by name, and left alone',
  async (encoding) => {
    const name = `test_${encoding.toLowerCase()}_${process.pid}`;
    const ask = (statement: string) => runStatement(inject('postgresUrl'), statement);
    await ask(`create database ${name} encoding '${encoding}' locale 'C' template template0`);
    const url = new URL(inject('postgresUrl'));
    url.pathname = `/${name}`;
    await expect(openDatabase(url.href)).rejects.toThrow(
      `The database is in ${encoding}, and the app needs UTF8.`,
    );
    await runStatement(url.href, 'create table kysely_migration ()');
    await ask(`drop database ${name}`);
  },
);

onPostgres('another application’s Kysely tables in another schema are none of ours', async () => {
  const url = await newDatabaseUrl('postgres');
  for (const statement of [
    'create schema other',
    'create table other.kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)',
    "insert into other.kysely_migration values ('2020-theirs', '2020')",
    'create table other.kysely_migration_lock (id varchar(255) primary key, is_locked integer not null)',
  ]) {
    await runStatement(url, statement);
  }
  const db = await openDatabase(url);
  const { rows } = await sql<{ count: number }>`select count(*) as count from other.kysely_migration`.execute(
    db,
  );
  expect(rows).toEqual([{ count: 1 }]);
  await db.destroy();
  await (await openDatabase(url, { migrates: false })).destroy();
});

test.each([
  ['is gone', () => undefined],
  ['is another one', (path: string) => writeFileSync(path, '')],
])('a database file that %s is lost', async (what, replace) => {
  const path = join(tempDir(), 'app.db');
  const db = await openDatabase(`file:${path}`);
  await db.check();
  renameSync(path, `${path}-moved`);
  replace(path);
  await expect(db.check()).rejects.toMatchObject({
    name: 'LostDatabaseError',
    message: `The database file ${path} ${what} since this process opened it. What it writes would be lost, so it ends.`,
  });
  await db.destroy();
});

test('the error of a path that cannot be written names DATABASE_URL and what to do', async () => {
  const dir = tempDir();
  mkdirSync(join(dir, 'app.db'));
  await expect(openDatabase(`file:${dir}/app.db`)).rejects.toThrow(
    `The database of DATABASE_URL, ${dir}/app.db, cannot be opened: it is a directory: name a file in it.`,
  );
  writeFileSync(join(dir, 'file'), '');
  await expect(openDatabase(`file:${dir}/file/app.db`)).rejects.toThrow(
    `The database of DATABASE_URL, ${dir}/file/app.db, cannot be opened: the app must be able to write the file and its directory`,
  );
});

onPostgres('the error says whether the server is away, silent, or without the database', async () => {
  const nobody = new URL(inject('postgresUrl'));
  nobody.pathname = '/no_such_database';
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as { port: number };
  const cases: [string, string][] = [
    [nobody.href, 'refuses the user, the password or the name in DATABASE_URL'],
    ['postgres://127.0.0.1:9/app', 'it cannot be reached'],
    [`postgres://127.0.0.1:${port}/app`, 'it cannot be reached'],
  ];
  const errors = await Promise.all(
    cases.map(([url]) =>
      openDatabase(url).then(
        () => undefined,
        (error) => error,
      ),
    ),
  );
  silent.close();
  expect(errors.map(({ name, message }) => [name, message])).toEqual(
    cases.map(([, words]) => ['StoreError', expect.stringContaining(words)]),
  );
});
