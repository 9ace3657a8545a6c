import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { RemovalStore } from '../../src/store/removals.ts';
import { openTestStore } from './test-store.ts';

const store = await openTestStore();
const { db, instances, tokens, runs, records } = store;
const removals = new RemovalStore(db);

/** A company whose copy takes several portions to remove. */
async function addCopied() {
  const { claim } = await store.claimRun();
  const documents = Array.from({ length: 1_200 }, (_, n) => `{"id":"old-${n}"}`);
  await store.write(claim, documents, { next: 'https://x.example/p2' });
  return claim;
}

/** What an install of a company that is known does, but for its tokens. */
async function installAgain(id: string): Promise<void> {
  expect(await instances.setStatus(id, 'active', { from: ['disconnected'] })).toBe(true);
}

test('what is installed while a copy is being removed waits until that is through, and stays', async () => {
  const claim = await addCopied();
  const id = claim.instanceId;
  await tokens.disconnect(id, { deleteData: true });
  // The process that was asked to stands still here, before the first portion.
  await installAgain(id);
  await store.claimRun(claim).catch(() => undefined);
  expect(await store.write(claim, ['{"id":"late"}'])).toBeUndefined();
  while (await removals.resume()) {
    const left = await db.selectFrom('removals').selectAll().where('instance_id', '=', id).execute();
    expect(await runs.claim(claim)).toEqual(left.length > 0 ? undefined : expect.anything());
  }
  const { fence, stored } = (await runs.claim(claim)) ?? expect.unreachable();
  expect([stored, await store.count(id, 'contacts')]).toEqual([0, 0]);
  await store.write({ ...claim, fence }, ['{"id":"new-1"}', '{"id":"new-2"}']);
  // It goes on, as if nothing had been.
  await records.finishRemoval(id);
  expect(await store.count(id, 'contacts')).toBe(2);
  expect(await runs.find(claim)).toMatchObject({ stored: 2, records: 2 });
});

test('a disconnect that comes to nothing has ended nothing', async () => {
  const claim = await addCopied();
  const id = claim.instanceId;
  await sql`create trigger broken before insert on removals begin select raise(abort, 'broken'); end`.execute(
    db,
  );
  await expect(tokens.disconnect(id, { deleteData: true })).rejects.toThrow('broken');
  await sql`drop trigger broken`.execute(db);
  expect(await instances.find(id)).toMatchObject({ status: 'active' });
  expect(await tokens.find(id)).toBeDefined();
  expect(await store.write(claim, ['{"id":"goes on"}'])).toMatchObject({ stored: 1_201 });
});
