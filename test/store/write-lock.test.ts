import { setImmediate as othersTurn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { afterAll, expect, test } from 'vitest';
import { joinDatabase } from '../../src/store/open-database.ts';
import { openTestStore } from './test-store.ts';

const store = await openTestStore();
const other = await joinDatabase(store.url);
afterAll(() => other.destroy());

/** Holds the write lock, by the other connection, until it is released. */
function holdLock(): () => unknown {
  other.prepare('begin immediate').run();
  return () => other.prepare('commit').run();
}

test('a transaction waits for that of another connection, and the event loop goes on', async () => {
  const release = holdLock();
  let isWritten = false;
  const written = store.db
    .writeAtOnce(() => store.db.prepare<[]>("insert into removals values ('one')").run())
    .then(() => {
      isWritten = true;
    });
  // Only the event loop can release it.
  for (let turn = 0; turn < 50; turn++) await othersTurn();
  expect(isWritten).toBe(false);
  release();
  await written;
  expect(await store.db.selectFrom('removals').selectAll().execute()).toEqual([{ instance_id: 'one' }]);
});

test('what fails within the transaction is not tried again', async () => {
  const error = new Sqlite.SqliteError('own', 'SQLITE_BUSY');
  let times = 0;
  const failing = store.db.writeAtOnce(() => {
    times++;
    throw error;
  });
  await expect(failing).rejects.toBe(error);
  expect(times).toBe(1);
});
