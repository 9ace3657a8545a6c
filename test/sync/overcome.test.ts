import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { pathOf } from '../../src/store/existing-file.ts';
import { explainTrouble } from '../../src/store/trouble.ts';
import { findOvercome } from '../../src/sync/overcome.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { CREDENTIALS_REFUSED } from '../../src/tokens/token-errors.ts';
import { missingKeyMessages } from '../../src/tokens/vault.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { startTestRedis } from '../support/test-redis.ts';

const store = await openTestStore();
const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

async function failedWith(error: string) {
  const { claim } = await store.claimRun();
  await store.runs.fail(claim, { error, keepsPlace: true, now: NOW });
  return { instanceId: claim.instanceId, resource: claim.resource };
}

test('runs that failed as the database could not be written are found when it can be, and no others', async () => {
  const { db } = store;
  const look = findOvercome({
    db,
    pauses: new RefreshPauses(redis),
    keyIds: [],
    hideSecrets: (text) => text,
  });
  const full = new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
  const damaged = new Sqlite.SqliteError('database disk image is malformed', 'SQLITE_CORRUPT');
  const [unwritten] = await Promise.all(
    [full, damaged].map((error) => failedWith(String(Object(explainTrouble(error)).message))),
  );
  const other = new Sqlite(pathOf(db.url));
  other.exec('begin immediate');
  expect(await look()).toEqual([]);
  other.close();
  expect(await look()).toEqual([unwritten]);
  await db.deleteFrom('runs').execute();
});

test('runs that a key was missing for are found at every look, those that credentials were refused for at the first that comes to its end', async () => {
  const look = findOvercome({
    db: store.db,
    pauses: new RefreshPauses(redis),
    keyIds: ['k1'],
    hideSecrets: (text) => text,
  });
  const [missing = ''] = missingKeyMessages(['k1']);
  const unlocked = await failedWith(missing);
  const refused = await failedWith(CREDENTIALS_REFUSED);
  await failedWith('The service has trouble (500).');

  redis.disconnect();
  await expect(look()).rejects.toThrow();
  await redis.connect();
  // Those that come at once are one.
  expect(await Promise.all([look(), look()])).toEqual([[unlocked, refused], [unlocked]]);
  expect(await look()).toEqual([unlocked]);
});
