import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { readFigures } from '../../src/store/figures.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { type ControlParts, SyncControl } from '../../src/sync/control.ts';
import { RESOURCES } from '../../src/sync/resources.ts';
import type { StatusReader } from '../../src/sync/status.ts';
import { NOW, openTestStore } from '../store/test-store.ts';

const HOUR_MS = 60 * 60_000;
const NAMES = RESOURCES.map(({ name }) => name);

function controlOf(store: Omit<ControlParts, 'resources' | 'status' | 'enqueue'>) {
  const enqueued: unknown[] = [];
  const control = new SyncControl({
    ...store,
    resources: RESOURCES,
    status: {} as StatusReader,
    enqueue: async (runs) => void enqueued.push(...runs),
    now: () => NOW,
  });
  return { control, enqueued };
}

test('a resume that the database takes only a part of has resumed nothing, and counts anew when it comes again', async () => {
  const store = await openTestStore();
  const id = await store.addInstance();
  await store.runs.start({ instanceId: id, resource: 'contacts' }, NOW - 9_000);
  await store.instances.setStatus(id, 'paused', { from: ['active'] });
  const locked = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
  let writes = 0;
  /** The first write of a resume is taken, the second not. */
  const trouble = <Args extends unknown[], Result>(write: (...args: Args) => Promise<Result>) => {
    return async (...args: Args) => {
      if (++writes === 2) throw locked;
      return write(...args);
    };
  };
  const instances = new InstanceStore(store.db);
  instances.setStatus = trouble(instances.setStatus.bind(instances));
  store.runs.countAnew = trouble(store.runs.countAnew.bind(store.runs));
  const { control, enqueued } = controlOf({ ...store, instances });
  await expect(control.resume(id)).rejects.toBe(locked);
  expect((await store.instances.find(id))?.status).toBe('paused');
  expect(enqueued).toEqual([]);

  await control.resume(id);
  expect((await store.instances.find(id))?.status).toBe('active');
  expect(enqueued).toEqual([{ instanceId: id, resource: 'contacts' }]);
  expect((await readFigures(store.db, NOW, HOUR_MS, NAMES)).behindSince).toBe(NOW);
});

test('a sync that the database takes only a part of has started nothing', async () => {
  const store = await openTestStore();
  const id = await store.addInstance();
  const { control, enqueued } = controlOf(store);
  await sql`create trigger broken before insert on runs when new.resource = ${sql.lit(NAMES.at(-1))}
    begin select raise(abort, 'broken'); end`.execute(store.db);
  await expect(control.syncNow(id)).rejects.toThrow('broken');
  expect(await store.runs.list(id)).toEqual([]);
  expect(enqueued).toEqual([]);

  await sql`drop trigger broken`.execute(store.db);
  await control.syncNow(id);
  expect(enqueued).toEqual(NAMES.map((resource) => ({ instanceId: id, resource })));
});
