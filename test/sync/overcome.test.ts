import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { missingKeyMessage } from '../../src/auth/token-cipher.ts';
import { CREDENTIALS_REFUSED } from '../../src/auth/tokens.ts';
import { pathOf } from '../../src/store/existing-file.ts';
import { findOvercome } from '../../src/sync/overcome.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const store = await openTestStore();

async function failedWith(error: string) {
  const { claim } = await store.claimRun();
  await store.runs.fail(claim, { error, keepsPlace: true, now: NOW });
  return { instanceId: claim.instanceId, resource: claim.resource };
}

test('runs that failed as the database could not be written are found when it can be, and no others', async () => {
  const { db, runs, claimRun, addInstance } = await openTestStore();
  const look = findOvercome({
    db,
    checkRedis: async () => {},
    keyIds: [],
    hideSecrets: (text) => text,
  });
  const { logger } = testLogger();
  const context = { logger, signal: new AbortController().signal } as SliceContext;
  /** Fails a run as its last try does. */
  const fail = async (error: unknown) => {
    const { run, claim } = await claimRun();
    await endSlice({ runs } as SyncParts, claim, { ...run, attempt: 6 }, error, context);
    return { instanceId: claim.instanceId, resource: claim.resource };
  };
  const caught = (work: Promise<unknown>) =>
    work.then(
      () => expect.unreachable(),
      (error: unknown) => error,
    );

  const pages = db.prepare<[], number>('pragma page_count').pluck().get();
  db.prepare(`pragma max_page_count = ${pages}`).get();
  const grow = async () => {
    for (;;) await addInstance();
  };
  const full = await caught(grow());
  db.prepare('pragma max_page_count = 1000000').get();
  const other = new Sqlite(pathOf(db.url));
  other.exec('begin immediate');
  const locked = await caught(db.check());
  other.exec('rollback');
  expect([full, locked]).toMatchObject([{ code: 'SQLITE_FULL' }, { code: 'SQLITE_BUSY' }]);
  const held = [await fail(full), await fail(locked)];
  await fail(new Error('The database is not to blame'));

  other.exec('begin immediate');
  expect(await look()).toEqual([]);
  other.close();
  expect(await look()).toEqual(expect.arrayContaining(held));
  expect((await look()).length).toBe(held.length);
});

test('runs that failed as Redis took no writes, or could not be reached, are found when it can be worked with, and no others', async () => {
  const { db, runs, claimRun } = await openTestStore();
  const { logger } = testLogger();
  const context = { logger, signal: new AbortController().signal } as SliceContext;
  let trouble: Error | undefined;
  const look = findOvercome({
    db,
    checkRedis: async () => {
      if (trouble) throw trouble;
    },
    keyIds: [],
    hideSecrets: (text) => text,
  });
  const fail = async (error: Error) => {
    const { run, claim } = await claimRun();
    await endSlice({ runs } as SyncParts, claim, { ...run, attempt: 6 }, error, context);
    return { instanceId: claim.instanceId, resource: claim.resource };
  };
  const closed = new Redis({ lazyConnect: true });
  closed.disconnect();
  const away = await closed.get('a').then(
    () => expect.unreachable(),
    (error: Error) => error,
  );
  const full = new Error("OOM command not allowed when used memory > 'maxmemory'.");
  const held = [await fail(full), await fail(away)];
  await fail(new Error('Redis is not to blame'));

  trouble = new Error('still full');
  expect(await look()).toEqual([]);
  trouble = undefined;
  const found = await look();
  expect(found).toEqual(expect.arrayContaining(held));
  expect(found.length).toBe(held.length);
});

test('runs that a key was missing for are found at every look, those that credentials were refused for at the first', async () => {
  const look = findOvercome({
    db: store.db,
    checkRedis: async () => {},
    keyIds: ['k1'],
    hideSecrets: (text) => text,
  });
  const unlocked = await failedWith(missingKeyMessage('k1'));
  const refused = await failedWith(CREDENTIALS_REFUSED);
  await failedWith('The service has trouble (500).');

  // Those that come at once are one.
  expect(await Promise.all([look(), look()])).toEqual([[unlocked, refused], [unlocked]]);
  expect(await look()).toEqual([unlocked]);
});
