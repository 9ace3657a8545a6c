import { describe, expect, test } from 'vitest';
import { DATABASES, openTestStore } from '../store/test-store.ts';
import { ASKED_ITEMS, HOUR_MS, type ListService, openList } from './list-service.ts';
import { openWorkerDatabase } from './worker-database.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);

  /** A list that was read to its end once, in pages of three records. */
  async function copied(options: Parameters<typeof openList>[1] = {}) {
    const list = await openList(store, { records: 9, order: 'creation', ...options });
    expect(await list.run()).toMatchObject({ state: 'finished', is_unsure: 0 });
    await list.feed();
    const remove = (from: number, to = from + 1) => {
      for (let n = from; n < to; n++) list.service.records.delete(`r${n}`);
    };
    return { ...list, remove };
  }
  const deleted = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => `r${from + n} deleted`);
  /** The check at the end of the next run fails. */
  const failCheck = (service: ListService) => {
    let heads = 0;
    service.onRequest = async ({ after }) => (after === null && ++heads === 2 ? 'broken' : undefined);
  };

  test('a record goes when two full runs in a row miss it, the second at once', async () => {
    const { remove, run, list, feed } = await copied();
    remove(4);
    expect(await run()).toMatchObject({ missing: 1, deleted: 0, is_repeat: 0 });
    expect((await list()).run).toMatchObject({ is_repeat: 1, finished_at: null });
    expect(await feed()).toEqual([]);
    expect(await run()).toMatchObject({ missing: 0, deleted: 1, is_repeat: 1 });
    expect(await feed()).toEqual(['r4 deleted']);
  });

  test('a repeated run starts no other, and no list of more than 20 pages is repeated', async () => {
    const { remove, run, list } = await copied();
    remove(4);
    await run();
    remove(5);
    expect(await run()).toMatchObject({ missing: 1, deleted: 1 });
    expect((await list()).run).toMatchObject({ state: 'finished' });
    const long = await copied({ records: 64 });
    long.remove(4);
    expect(await long.run()).toMatchObject({ pages: 21, missing: 1 });
    expect((await long.list()).run).toMatchObject({ state: 'finished' });
  });

  test.each([
    ['first', [1, 0], 2],
    ['second', [0, 1, 0], 3],
  ])('a run whose check fails deletes nothing, but counts: the %s one', async (_what, unsure, runs) => {
    const { service, remove, run, feed } = await copied();
    remove(4);
    for (let n = 1; n <= runs; n++) {
      expect(await feed()).toEqual([]);
      service.onRequest = () => undefined;
      if (unsure[n - 1]) failCheck(service);
      expect(await run()).toMatchObject({ is_unsure: unsure[n - 1], deleted: n === runs ? 1 : 0 });
    }
  });

  test.each([
    ['of one page twice is the whole list', [9], 5, 1],
    ['that was longer before is read again', [8, 8], 5, 0],
    ['that is empty is read again', [9], 9, 0],
  ])('a list %s', async (_what, sizes, count, runs) => {
    const { remove, run, feed } = await copied({ sizes });
    remove(9 - count, 9);
    await run();
    expect(await feed()).toEqual(runs === 1 ? deleted(9 - count, 9) : []);
    await run();
    expect(await feed()).toEqual(runs === 1 ? [] : deleted(9 - count, 9));
  });

  describe('the service is asked for a missing record:', () => {
    test.each<[string, { status: number; body?: string }, string[]]>([
      ['404 deletes it', { status: 404 }, ['r4 deleted']],
      ['410 deletes it', { status: 410 }, ['r4 deleted']],
      ['403 deletes it', { status: 403 }, ['r4 deleted']],
      ['200 keeps and stores it', { status: 200, body: '{"id":"r4","version":99}' }, ['r4 changed']],
      ['another record proves nothing', { status: 200, body: '{"id":"r5","version":99}' }, []],
      ['another refusal proves nothing', { status: 400 }, []],
      ['a failure proves nothing', { status: 500 }, []],
    ])('%s', async (_what, answer, changes) => {
      const { service, remove, run, feed } = await copied({ resource: ASKED_ITEMS });
      remove(4);
      service.onRequest = async ({ record }) => (record === 'r4' ? answer : undefined);
      expect(await run()).toMatchObject({ missing: changes.length === 0 ? 1 : 0 });
      expect(await feed()).toEqual(changes);
    });

    test.each([
      ['before', 1],
      ['after', 3],
    ])('nothing is believed if one that is there is denied %s it', async (_when, asked) => {
      const { service, remove, run, feed } = await copied({ resource: ASKED_ITEMS });
      remove(4);
      const records = () => service.requests.filter(({ record }) => record !== undefined);
      service.onRequest = async () => {
        service.deniesRecords = records().length === asked;
        return undefined;
      };
      expect(await run()).toMatchObject({ missing: 1, deleted: 0 });
      expect(records()).toHaveLength(asked);
      expect(await feed()).toEqual([]);
    });
  });

  describe('the brake', () => {
    test.each([
      ['lets half of a list go', 10, 5, 0],
      ['holds more than half, and asks nothing', 10, 6, 6],
      ['lets most of nine records go', 9, 8, 0],
    ])('%s', async (_what, records, gone, held) => {
      const options = { records, sizes: [100], resource: ASKED_ITEMS };
      const { service, remove, run, list } = await copied(options);
      remove(0, gone);
      expect(await run()).toMatchObject({ held, missing: held, deleted: gone - held });
      expect(service.requests).toHaveLength(1);
      expect(await list()).toMatchObject({ held, stored: records - gone + held });
    });

    test('deletes exactly the held records that a person confirms', async () => {
      const { service, remove, run, list, control, key, feed } = await copied({ records: 12 });
      const back = service.records.get('r11') ?? expect.unreachable();
      remove(4, 12);
      const first = await run();
      expect(first).toMatchObject({ missing: 8, held: 8 });
      service.records.set('r11', back);
      remove(3);
      const second = await run();
      expect(second).toMatchObject({ missing: 8, held: 7 });
      expect(await list()).toMatchObject({ held_run: first.id });
      const confirm = () => control.confirmDeletions(key.instanceId, key.resource);
      expect([await confirm(), await confirm()]).toEqual([true, false]);
      expect((await store.runs.find(second.id))?.deleted).toBe(7);
      expect(await feed()).toEqual(deleted(4, 11));
      expect(await list()).toMatchObject({ missing: 1, held: 0, held_run: null, stored: 5 });
    });

    test('holds whatever is missing while an item has no readable id', async () => {
      const { service, remove, run, clock, feed } = await copied({ records: 3 });
      remove(2);
      const items = [...service.records.values()].map((record) => service.document(record));
      const body = `{"_results":[${items},{"no":"id"}],"_pagination":{"next":null}}`;
      service.onRequest = async () => ({ status: 200, body });
      expect(await run()).toMatchObject({ missing: 1, held: 1 });
      clock.now += 25 * HOUR_MS;
      expect(await run()).toMatchObject({ missing: 1, held: 1 });
      expect(await feed()).toEqual([]);
    });
  });

  test('a worker that dies while it deletes leaves the rest to the next one', async () => {
    const db = await openWorkerDatabase(store.url);
    const { remove, run, feed } = await copied({ records: 1_200, sizes: [600], db });
    remove(0, 550);
    await run();
    // Its transactions: a claim, two pages, the end of a check, and the first 500 deletions.
    db.revive({ at: 5, how: 'after' });
    await expect(run()).rejects.toThrow('The worker is dead.');
    expect(await feed()).toHaveLength(500);
    db.revive(null);
    expect(await run()).toMatchObject({ deleted: 550, missing: 0, held: 0 });
    expect(await feed()).toEqual(deleted(500, 550));
  });
});
