import { existsSync, readFileSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { keepIndex } from '../../jobs/keep-index.ts';
import { openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const next = 'https://x.example/next';

async function start() {
  const store = await openTestStore();
  const { logger, lines } = testLogger();
  const { claim } = await store.claimRun();
  const write = (id: string) => store.write(claim, [`{"id":"${id}","name":"word"}`], { next });
  const found = async () => {
    const options = { search: 'word', offset: 0, limit: 5 };
    return (await store.records.browse(claim.instanceId, 'contacts', options)).total;
  };
  return {
    store,
    claim,
    write,
    found,
    lines,
    parts: { databaseUrl: store.url, logger },
  };
}

test('what is waiting is indexed, and what comes later too, until it ends', async () => {
  const { write, found, parts, lines } = await start();
  await write('1');
  await write('2');
  const end = keepIndex(parts);
  await waitFor(async () => (await found()) === 2);
  await write('3');
  await waitFor(async () => (await found()) === 3);
  await end();
  await write('4');
  expect(await found()).toBe(3);
  expect(lines).toEqual([]);
});

test('what is in the log is copied into the database, though nobody closes it', async () => {
  const { store, write, parts } = await start();
  const end = keepIndex(parts);
  await write('copied');
  const file = store.url.slice('file:'.length);
  await waitFor(async () => readFileSync(file).includes('"id":"copied"'));
  await end();
});

test('a log of the database that somebody who reads keeps is told, with its size', async () => {
  const { store, write, found, lines, parts } = await start();
  await write('1');
  const reader = new Sqlite(store.url.slice('file:'.length));
  reader.exec('begin');
  reader.prepare('select count(*) from records').get();
  const end = keepIndex({ ...parts, longLogPages: 1 });
  await write('2');
  await waitFor(() => lines.length > 0);
  await write('3');
  await waitFor(async () => (await found()) === 3);
  await end();
  reader.close();
  expect(lines).toEqual([
    expect.objectContaining({
      level: 'warn',
      logMb: expect.any(Number),
      msg: 'the log of the database grows, as a process reads it for long: lsof names it',
    }),
  ]);
});

test('parts of the index that a process before has left are merged, though nothing comes', async () => {
  const { store, lines, parts } = await start();
  for (let rowid = 1; rowid <= 8; rowid++) {
    await sql`insert into search (rowid, words) values (${rowid}, ${`word${rowid}`})`.execute(store.db);
  }
  expect(await store.countIndexParts()).toBe(8);
  const end = keepIndex(parts);
  await waitFor(async () => (await store.countIndexParts()) < 4);
  await end();
  expect(lines).toEqual([]);
});

test('a removal that broke off is finished', async () => {
  const { store, claim, write, parts } = await start();
  await write('1');
  await store.db.insertInto('removals').values({ instance_id: claim.instanceId }).execute();
  const end = keepIndex(parts);
  await waitFor(async () => (await store.count(claim.instanceId, 'contacts')) === 0);
  await end();
  expect(await store.db.selectFrom('removals').selectAll().execute()).toEqual([]);
});

test('a removal that broke off does not wait until nothing is left to index', async () => {
  const { store, claim, write, parts } = await start();
  await write('1');
  const other = await store.claimRun();
  await store.write(other.claim, ['{"id":"1"}'], { next });
  // The queue is never empty: what leaves it comes again.
  await sql`create trigger again after delete on search_queue begin
    insert into search_queue (list, seqs, count) values (old.list, old.seqs, old.count); end`.execute(
    store.db,
  );
  await store.db.insertInto('removals').values({ instance_id: claim.instanceId }).execute();
  const end = keepIndex(parts);
  await waitFor(async () => (await store.count(claim.instanceId, 'contacts')) === 0);
  await end();
  expect(await store.db.selectFrom('removals').selectAll().execute()).toEqual([]);
  expect(await store.count(other.claim.instanceId, 'contacts')).toBe(1);
});

test('trouble is told, and ends with the process', async () => {
  const { store, write, parts, lines } = await start();
  await write('1');
  await store.db.schema.dropTable('search').execute();
  const end = keepIndex(parts);
  await waitFor(() => lines.length > 0);
  await end();
  expect(lines).toMatchObject([{ level: 'warn', msg: 'the search index could not be kept up' }]);
  expect(lines[0]?.err).toMatchObject({ message: expect.stringContaining('no such table') });
});

test('after trouble it goes on', async () => {
  const { store, write, found, parts, lines } = await start();
  await write('1');
  await store.db.schema.alterTable('search_queue').renameTo('elsewhere').execute();
  const end = keepIndex({ ...parts, afterTroubleMs: 20 });
  await waitFor(() => lines.length > 1);
  await store.db.schema.alterTable('elsewhere').renameTo('search_queue').execute();
  await waitFor(async () => (await found()) === 1);
  await end();
});

test('a record that cannot be read is told once, with its list and seq, and nothing waits behind it', async () => {
  const { store, claim, write, found, parts, lines } = await start();
  await write('damaged');
  await store.db.updateTable('records').set({ document: '{"id":"dam' }).execute();
  await write('behind');
  const { seq, list } = await store.db
    .selectFrom('records')
    .select(['seq', 'list'])
    .where('id', '=', 'damaged')
    .executeTakeFirstOrThrow();
  const end = keepIndex(parts);
  await waitFor(async () => (await found()) === 1);
  await waitFor(() => lines.length > 0);
  await end();
  const { instanceId, resource } = claim;
  const msg = 'a record cannot be read: no search finds it';
  expect(lines).toMatchObject([{ level: 'warn', msg, instanceId, resource, list, seq }]);
  expect(JSON.stringify(lines)).not.toContain('dam');
});

test('an entry of the queue that brings the thread down stops it for what is behind it once', async () => {
  const { store, write, found, parts, lines } = await start();
  await write('lost');
  await store.db.updateTable('search_queue').set({ seqs: 'damaged' }).execute();
  for (let n = 0; n < 5; n++) await write(String(n));
  const end = keepIndex({ ...parts, afterTroubleMs: 20 });
  await waitFor(async () => (await found()) === 5);
  await end();
  expect(lines[0]).toMatchObject({ level: 'warn', msg: 'the search index could not be kept up' });
});

test('the last thing that it does is to close the database', async () => {
  const { store, write, found, parts } = await start();
  await write('1');
  const end = keepIndex(parts);
  await waitFor(async () => (await found()) === 1);
  await end();
  await store.records.close();
  await store.db.destroy();
  // The last connection takes the log with it.
  expect(existsSync(`${store.url.slice('file:'.length)}-wal`)).toBe(false);
});

test('one that ends before it has begun does nothing, and waits for nothing', async () => {
  const { write, found, parts, lines } = await start();
  await write('1');
  await keepIndex(parts)();
  expect(await found()).toBe(0);
  expect(lines).toEqual([]);
});
