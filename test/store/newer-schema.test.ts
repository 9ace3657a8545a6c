import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { waitFor } from '../support/wait-for.ts';
import { migrateFurther, NEXT } from './migrate-further.ts';
import { openTestStore, type TestStore } from './test-store.ts';

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
