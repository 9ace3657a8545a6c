import { expect, test } from 'vitest';
import { NOW, openTestStore } from './test-store.ts';

const FULL = 2;
const NORMAL = 1;

const store = await openTestStore();
const { db, instances, tokens } = store;

/** Prepared anew each time: the answer is the one of the moment of its preparation. */
function level(): number {
  return db.prepare<[], { synchronous: number }>('pragma synchronous').get()?.synchronous ?? -1;
}

/** The writes that come through Kysely: how they wait for the disk, read within their transactions. */
function watch(isWrite: RegExp): number[] {
  const seen: number[] = [];
  const { database } = db.prepare('select 1');
  const prepare = database.prepare.bind(database);
  database.prepare = ((source: string) => {
    if (isWrite.test(source)) seen.push(database.inTransaction ? level() : -1);
    return prepare(source);
  }) as typeof prepare;
  return seen;
}

function watchWrites(table: string): number[] {
  return watch(new RegExp(`^(insert into|update|delete from) "${table}"`));
}

test('tokens and what becomes of an instance are on the disk when they are written; pages may wait', async () => {
  const { claim } = await store.claimRun();
  const ofTokens = watchWrites('tokens');
  const ofInstances = watchWrites('instances');

  await store.addInstance();
  const row = (await tokens.find(claim.instanceId)) ?? expect.unreachable();
  expect(await tokens.acquireLease(row, 'me', 1_000)).toBe(true);
  expect(await tokens.save(row, { ...row, refresh_token: 'rotated' }, 0)).toBe(true);
  await instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
  const newer = (await tokens.find(claim.instanceId)) ?? expect.unreachable();
  expect(await tokens.reencrypt([{ read: newer, written: { ...newer, access_token: 'again' } }])).toBe(1);
  expect(await tokens.reject(newer, 'Over.')).toBe(true);
  await tokens.disconnect(claim.instanceId);

  expect(ofTokens).toEqual(Array(5).fill(FULL));
  expect(ofInstances).toEqual(Array(5).fill(FULL));
  expect(level()).toBe(NORMAL);
});

test('pages that come while such a write is under way wait for it', async () => {
  const { claim } = await store.claimRun();
  const writes = [
    store.write(claim, ['{"id":"1"}']),
    store.addInstance(),
    store.write(claim, ['{"id":"2"}']),
  ];
  await db.durably(async (transaction) => {
    await transaction
      .updateTable('instances')
      .set({ notice: 'x' })
      .where('id', '=', claim.instanceId)
      .execute();
    writes.push(store.write(claim, ['{"id":"3"}']));
    await transaction
      .updateTable('instances')
      .set({ notice: 'y' })
      .where('id', '=', claim.instanceId)
      .execute();
    expect(await transaction.selectFrom('records').select('id').where('id', '=', '3').execute()).toEqual([]);
  });
  await Promise.all(writes);
  expect(await store.count(claim.instanceId, 'contacts')).toBe(3);
  expect(await store.runs.find(claim)).toMatchObject({ pages: 3, stored: 3, started_at: NOW });
});

test('a page that fails leaves nothing open', async () => {
  await expect(
    db.writeAtOnce(() => {
      throw new Error('broken');
    }),
  ).rejects.toThrow('broken');
  await expect(
    db.durably(async () => {
      throw new Error('broken too');
    }),
  ).rejects.toThrow('broken too');
  const { claim } = await store.claimRun();
  expect(await store.write(claim, ['{"id":"1"}'])).toMatchObject({ pages: 1 });
  expect(level()).toBe(NORMAL);
});
