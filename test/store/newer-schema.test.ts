import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { waitFor } from '../support/wait-for.ts';
import { migrateFurther, NEXT } from './migrate-further.ts';
import { NOW, openTestStore, type TestStore } from './test-store.ts';

let store: TestStore;
let other: Sqlite.Database;
beforeEach(async () => {
  store = await openTestStore();
  other = new Sqlite(store.url.replace('file:', ''));
  return () => void other.close();
});

describe('a database that a newer version has migrated', () => {
  test('is not written any more by a page that was under way, nor read for one', async () => {
    const { claim } = await store.claimRun();
    expect(await store.write(claim, ['{"id":"1"}'])).toMatchObject({ pages: 1 });
    migrateFurther(other);
    await expect(store.db.writeAtOnce(() => 'written')).rejects.toThrow(NewerSchemaError);
    await expect(store.write(claim, ['{"id":"2"}'])).rejects.toThrow(
      /newer version of this app \(9000-next\)/,
    );
    expect(await store.runs.find(claim)).toMatchObject({ pages: 1 });
  });

  test('takes nothing that begins or ends something, and is left as it is', async () => {
    const { claim } = await store.claimRun();
    const { instanceId } = claim;
    const idle = { instanceId, resource: 'conversations' };
    const row = (await store.tokens.find(instanceId)) ?? expect.unreachable();
    const tables = () =>
      ['instances', 'tokens', 'runs', 'removals', 'key_checks'].map((name) =>
        other.prepare(`select * from ${name}`).all(),
      );
    migrateFurther(other);
    const before = tables();
    for (const work of [
      () => store.tokens.reject(instanceId, row.version, 'over'),
      () => store.tokens.takeBackEnds([{ ...row, notice: 'over' }]),
      () => store.tokens.reseal([{ read: row, sealed: { ...row, access_token: 'anew' } }]),
      () => store.tokens.keepKeyCheck('k1', 'value'),
      () => store.tokens.disconnect(instanceId, { deleteData: true }),
      () => store.instances.setStatus(instanceId, 'paused', { from: ['active'] }),
      () => store.instances.endAccess(instanceId, 1),
      () => store.runs.start(idle, NOW),
      () => store.runs.countAnew(instanceId, NOW + 1),
      () => store.runs.endNoLater(NOW - 1),
    ]) {
      await expect(work(), String(work)).rejects.toThrow(NewerSchemaError);
      expect(tables(), String(work)).toEqual(before);
    }
  });

  test('is not changed by a transaction that waited for the write lock, which the migration held', async () => {
    const { claim } = await store.claimRun();
    other.exec('begin immediate');
    const waiting = store.tokens.disconnect(claim.instanceId);
    other.exec('alter table records add column remark text');
    other.exec(NEXT);
    other.exec('commit');
    await expect(waiting).rejects.toThrow(NewerSchemaError);
    expect(await store.instances.find(claim.instanceId)).toMatchObject({ status: 'active' });
  });

  test('gets the grant of an install that has come, for an instance that is there and for a new one', async () => {
    const known = await store.addInstance();
    const before = (await store.tokens.find(known)) ?? expect.unreachable();
    migrateFurther(other);
    await store.addInstance(known);
    expect((await store.tokens.find(known))?.version).toBe(before.version + 1);
    const anew = await store.addInstance();
    expect(await store.tokens.find(anew)).toBeDefined();
    expect(await store.instances.find(anew)).toMatchObject({ status: 'active' });
    // All but the columns of these two may have gone elsewhere.
    other.exec('alter table runs rename column behind_since to behind_from');
    await store.addInstance(known);
    expect((await store.tokens.find(known))?.version).toBe(before.version + 2);
  });

  test('gets a refreshed grant that has come, which would be lost otherwise; none is asked for', async () => {
    const row = (await store.tokens.find(await store.addInstance())) ?? expect.unreachable();
    migrateFurther(other);
    expect(await store.tokens.replace({ ...row, refresh_token: 'rotated' }, row.version)).toBe(true);
    expect(other.prepare('select refresh_token from tokens').pluck().all()).toEqual(['rotated']);
    await waitFor(() =>
      store.tokens.checkWritable().then(
        () => false,
        (error) => error instanceof NewerSchemaError,
      ),
    );
  });

  test('is not read any more, soon after it became so, and then never again', async () => {
    await store.db.atOnce(() => 'read');
    migrateFurther(other);
    const read = () => store.db.atOnce(() => 'read').catch((error: unknown) => error);
    await waitFor(async () => (await read()) instanceof NewerSchemaError);
    expect(await read()).toBeInstanceOf(NewerSchemaError);
  });

  test('is seen by a page that waited for the write lock, which the migration held', async () => {
    await store.claimRun();
    other.exec('begin immediate');
    const waiting = store.db.writeAtOnce(() => 'written');
    other.exec('alter table records add column remark text');
    other.exec(NEXT);
    other.exec('commit');
    await expect(waiting).rejects.toThrow(NewerSchemaError);
  });

  test('is noticed by who watches it, once', async () => {
    const told: string[] = [];
    const end = store.db.watchSchema(({ message }) => told.push(message));
    migrateFurther(other);
    await waitFor(() => told.length > 0);
    expect(told).toEqual([expect.stringContaining('9000-next')]);
    end();
  });

  test('is not opened, and left as it is', async () => {
    migrateFurther(other);
    const before = other.pragma('schema_version');
    await expect(openDatabase(store.url)).rejects.toThrow(NewerSchemaError);
    expect(other.pragma('schema_version')).toEqual(before);
  });
});

test('a change of the schema that is no migration, such as an index of one’s own, harms nothing', async () => {
  const { claim } = await store.claimRun();
  await store.write(claim, ['{"id":"1"}']);
  other.exec('create index mine on records (updated_at); analyze');
  expect(await store.write(claim, ['{"id":"2"}'])).toMatchObject({ pages: 2 });
});

test('who finds nothing to migrate does not ask for the write lock', async () => {
  other.exec('begin immediate');
  const db = await openDatabase(store.url);
  expect(await db.selectFrom('instances').select('id').execute()).toEqual([]);
  await db.destroy();
  other.exec('rollback');
});
