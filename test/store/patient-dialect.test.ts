import { setImmediate as othersTurn } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { joinDatabase } from '../../src/store/open-database.ts';
import { Patience } from '../../src/store/patience.ts';
import { openTestStore } from './test-store.ts';

const store = await openTestStore();
const other = await joinDatabase(store.url);
afterAll(() => other.destroy());

/** Lets another connection hold the write lock while this is under way; only the event loop can release it. */
async function whileLocked(work: () => Promise<unknown>): Promise<void> {
  other.prepare('begin immediate').run();
  let isDone = false;
  const done = work().then(() => {
    isDone = true;
  });
  for (let turn = 0; turn < 50; turn++) await othersTurn();
  expect(isDone).toBe(false);
  other.prepare('commit').run();
  await done;
}

test('a query waits for the write of another connection, and the event loop goes on', async () => {
  const id = await store.addInstance();
  await whileLocked(() => store.instances.setStatus(id, 'paused', { from: ['active'] }));
  expect((await store.instances.find(id))?.status).toBe('paused');
});

test('so does a transaction; nothing of it is lost', async () => {
  const id = await store.addInstance();
  await whileLocked(() =>
    store.db.transact(async (transaction) => {
      await transaction.insertInto('removals').values({ instance_id: id }).execute();
      await transaction.updateTable('instances').set({ name: 'Renamed' }).where('id', '=', id).execute();
    }),
  );
  expect((await store.instances.find(id))?.name).toBe('Renamed');
  expect(await store.db.selectFrom('removals').selectAll().execute()).toEqual([{ instance_id: id }]);
});

test('who reads while a transaction waits neither waits with it nor keeps it from its turn', async () => {
  const id = await store.addInstance();
  const names = store.db.prepare<[string], string>('select name from instances where id = ?').pluck();
  other.prepare('begin immediate').run();
  other.prepare("update instances set name = 'Theirs' where id = ?").run(id);
  const written = store.db.transact((transaction) =>
    transaction
      .updateTable('instances')
      .set(({ eb }) => ({ name: eb('name', '||', ', and ours') }))
      .where('id', '=', id)
      .execute(),
  );
  for (let turn = 0; turn < 50; turn++) await othersTurn();
  expect(await store.db.atOnce(() => names.get(id))).not.toMatch(/Theirs/);
  expect((await store.instances.find(id))?.name).not.toMatch(/Theirs/);
  other.prepare('commit').run();
  await written;
  expect(await store.db.atOnce(() => names.get(id))).toBe('Theirs, and ours');
});

test('of a transaction that SQLite has rolled back by itself, what went wrong is told, and nothing is left', async () => {
  const id = await store.addInstance();
  const work = store.db.transaction().execute(async (transaction) => {
    await transaction.updateTable('instances').set({ name: 'Lost' }).where('id', '=', id).execute();
    const values = { instance_id: id };
    await transaction.insertInto('removals').values([values, values]).orRollback().execute();
  });
  await expect(work).rejects.toThrow(/UNIQUE constraint failed/);
  expect((await store.instances.find(id))?.name).not.toBe('Lost');
  await store.instances.setStatus(id, 'paused', { from: ['active'] });
  expect((await store.instances.find(id))?.status).toBe('paused');
});

test('the check waits, too, and leaves nothing behind', async () => {
  const before = store.db.prepare<[], number>('pragma user_version').pluck().get();
  await whileLocked(() => store.db.check());
  expect(store.db.prepare<[], number>('pragma user_version').pluck().get()).toBe(before);
});

test('one that waited in vain tells the others not to wait for long, until one gets through', () => {
  const patience = new Patience(5_000);
  expect(patience.ms).toBe(5_000);
  patience.wearOut();
  expect(patience.ms).toBeLessThan(1_000);
  patience.renew();
  expect(patience.ms).toBe(5_000);
});

test('a check that was in vain makes the next write give up soon, and one that gets through is the end of that', async () => {
  const id = await store.addInstance();
  other.prepare('begin immediate').run();
  await expect(store.db.check()).rejects.toThrow(/Another process has kept the database locked/);
  await expect(store.instances.setStatus(id, 'paused', { from: ['active'] })).rejects.toThrow(/locked/);
  other.prepare('commit').run();
  await store.db.check();
  await whileLocked(() => store.instances.setStatus(id, 'paused', { from: ['active'] }));
});

test('thousands of transactions that wait for each other leave the event loop its turns', async () => {
  const id = await store.addInstance();
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await Promise.all(
    Array.from({ length: 3_000 }, (_, at) =>
      store.db.transact((transaction) =>
        transaction
          .updateTable('instances')
          .set({ name: `Name ${at}` })
          .where('id', '=', id)
          .execute(),
      ),
    ),
  );
  clearInterval(timer);
  expect((await store.instances.find(id))?.name).toBe('Name 2999');
  // Without that there is none before the last of them is over.
  expect(turns).toBeGreaterThan(5);
});
