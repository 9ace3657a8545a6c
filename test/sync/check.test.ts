import { describe, expect, test } from 'vitest';
import { StoreError } from '../../src/store/database.ts';
import { DATABASES, openTestStore } from '../store/test-store.ts';
import { HOUR_MS, MINUTE_MS, openList } from './list-service.ts';
import { openWorkerDatabase } from './worker-database.ts';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);

  /** A list by activity that was read to its end. */
  async function copied(options: Parameters<typeof openList>[1] = {}) {
    const list = await openList(store, options);
    await list.run();
    await list.feed();
    const change = (ids: readonly string[]) => {
      for (const id of ids) list.service.change(list.service.records.get(id) ?? expect.unreachable());
    };
    return { ...list, change };
  }
  const numbered = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);

  test.each([
    ['stops at the first page without news', 9, 0, ['r0', 'r4'], 'changed', 2],
    ['reads one page when there is no news', 9, 0, [], 'unchanged', 1],
    ['reads on behind an empty page', 9, 2, [], 'unchanged', 3],
    ['stops at the end of the list', 9, 0, numbered(9), 'changed', 3],
    ['runs out after 20 pages', 63, 0, numbered(63), 'ran_out', 20],
  ])('a check %s', async (_what, records, blanks, ids, outcome, pages) => {
    const { service, change, check, feed } = await copied({ records, blanks });
    change(ids);
    expect(await check()).toBe(outcome);
    expect(service.requests).toHaveLength(pages);
    // In the order in which they changed. What is behind the pages stays.
    expect(await feed()).toEqual(ids.slice(outcome === 'ran_out' ? -60 : 0).map((id) => `${id} changed`));
  });

  test('a check that ran out makes a full run due', async () => {
    const { change, check, clock, list } = await copied({ records: 63 });
    const before = await list();
    const later = { full_due_at: clock.now + 10 * HOUR_MS };
    await store.db.updateTable('lists').set(later).where('id', '=', before.id).execute();
    clock.now += HOUR_MS;
    change(numbered(63));
    expect(await check()).toBe('ran_out');
    expect(await list()).toMatchObject({ full_due_at: clock.now, checked_at: before.checked_at, ran_out: 1 });
  });

  test('of a record on two pages of a check, the form read last counts', async () => {
    const { service, key, check, feed } = await copied({ order: 'name', records: 6 });
    const [first = expect.unreachable()] = service.records.values();
    service.change(first);
    service.onRequest = async ({ after }) => {
      if (after === null) return undefined;
      service.change(first);
      service.move(first, 4);
      return undefined;
    };
    expect(await check()).toBe('changed');
    expect(await feed()).toEqual(['r0 changed']);
    const { document } = (await store.records.find(key.instanceId, 'contacts', 'r0')) ?? expect.unreachable();
    expect(document).toBe(service.document(first));
  });

  test('checks inside a full run take at most every other request', async () => {
    const { service, clock, run } = await openList(store, { records: 24 });
    const heads: boolean[] = [];
    service.onRequest = async ({ after }) => {
      clock.now += 2 * MINUTE_MS;
      heads.push(after === null);
      return undefined;
    };
    expect(await run()).toMatchObject({ pages: 8, is_unsure: 0 });
    const checks = heads.slice(1).filter(Boolean).length;
    expect([heads.length, checks]).toEqual([12, 4]);
  });

  test('a run stays unsure if the worker of a check that ran out dies', async () => {
    const db = await openWorkerDatabase(store.url);
    const { service, run, list, clock } = await openList(store, { records: 63, db });
    service.onAnswer = async () => {
      if (service.requests.length !== 2) return;
      clock.now += 2 * MINUTE_MS;
      for (const record of service.records.values()) service.change(record);
    };
    // Its transactions: a claim, two pages, the check's twenty pages, and the check's end.
    db.revive({ at: 24, how: 'before' });
    await expect(run()).rejects.toBeInstanceOf(StoreError);
    expect((await list()).run).toMatchObject({ pages: 2, is_unsure: 1 });
  });
});
