import { describe, expect, test } from 'vitest';
import { installInstance } from '../support/install-instance.ts';
import { DATABASES, documentsOf, NOW, openTestStore } from './test-store.ts';

const REFUSED = { kind: 'refused', detail: 'Refused (404).' } as const;

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { db, instances, runs } = store;
  const work = { resources: ['contacts'], hasHandler: true };
  const page = { offset: 0, limit: 100, work };

  test('instances are found by a part of a name or an id, in any case', async () => {
    const { db, instances: own } = await openTestStore(kind);
    await installInstance(db, { id: 'ins_acme', name: 'Acme 100%' }, NOW);
    await installInstance(db, { id: 'other_1', name: 'ACME 1000' }, NOW + 1);
    await installInstance(db, { id: 'other_2', name: 'Łódź', company_id: 'cmp_42' }, NOW + 2);
    // The PostgreSQL of the tests lowers ASCII alone.
    const lodz = kind === 'sqlite' ? 'łó' : 'Łó';
    for (const [search, names] of [
      ['acme', ['Acme 100%', 'ACME 1000']],
      ['100%', ['Acme 100%']],
      ['e_1', []],
      ['CMP_42', ['Łódź']],
      [lodz, ['Łódź']],
      ['INS_acme', ['Acme 100%']],
      ['\\', []],
      ['', ['Acme 100%', 'ACME 1000', 'Łódź']],
    ] as const) {
      expect(
        (await own.list({ search, ...page })).map(({ name }) => name),
        search,
      ).toEqual(names);
      expect(await own.count({ search, work }), search).toBe(names.length);
    }
    expect(await own.list({ offset: 1, limit: 1, work })).toMatchObject([{ id: 'other_1' }]);
  });

  test('instances are found by their state, and by what needs attention', async () => {
    const failed = await store.claimRun();
    await runs.fail(failed, REFUSED, NOW, NOW);
    const overcome = await store.claimRun();
    await runs.fail(overcome, REFUSED, NOW, NOW);
    await store.copy([], overcome);
    const held = await store.claimRun();
    await store.finish(held, { held: 3 });
    await store.claimRun(held);
    const released = await store.claimRun();
    await store.finish(released, { held: 3 });
    await store.copy([], released);
    const letter = await store.copy(documentsOf(1));
    await store.bury(letter);
    const [asked, gone] = [await store.addInstance(), await store.claimRun()];
    await instances.setStatus(asked, 'needs_reauthorization', { from: ['active'] });
    await runs.fail(gone, REFUSED, NOW, NOW);
    await store.tokens.disconnect(gone.instanceId);

    const failing = await store.claimRun();
    const error = { kind: 'timeout', detail: 'No answer.', at: Date.now() - 121_000 } as const;
    await runs.wait(failing, { for: 'retry', until: null, error, requests: 1, refused: 0 });

    const undecided = await store.addInstance();
    const facts = {
      key_hash: 'x',
      request_hash: 'x',
      operation: 'x',
      is_repeatable: 0,
      created_at: NOW,
    } as const;
    const write = { ...facts, instance_id: undecided, state: 'unknown' } as const;
    await db
      .insertInto('outbox')
      .values([write, { ...write, instance_id: letter.instanceId, state: 'done' }])
      .execute();

    await db.updateTable('tokens').set({ refresh_due_at: Date.now() }).execute();
    const found = async (filter?: 'attention' | 'disconnected' | 'paused') =>
      (await instances.list({ ...(filter !== undefined && { filter }), ...page })).map(({ id }) => id);
    const [fails, waits] = [
      [failed, failing],
      [held, letter],
    ].map((claims) => claims.map(({ instanceId }) => instanceId));
    // The worst first: nobody can help a company that must authorize the app again but a person.
    const needy = [asked, ...(fails ?? []), ...(waits ?? []), undecided];
    expect(await found('attention')).toEqual(needy);
    const well = [overcome, released].map(({ instanceId }) => instanceId);
    expect(await found()).toEqual([...needy, ...well, gone.instanceId]);
    expect(await found('disconnected')).toEqual([gone.instanceId]);
    expect(await found('paused')).toEqual([]);
    const { name } = (await instances.find(held.instanceId)) ?? expect.unreachable();
    expect(await instances.count({ filter: 'attention', search: name, work })).toBe(1);
    expect(await instances.count({ filter: 'disconnected', search: name, work })).toBe(0);
  });

  test('each trouble is counted, found by its filter, and told with its list, its number and since when', async () => {
    const own = await openTestStore(kind);
    const now = Date.now();
    const list = async () => own.copy(documentsOf(2));
    const [asked, unrenewed, undecided] = [
      await own.addInstance(),
      await own.addInstance(),
      await own.addInstance(),
    ];
    await own.instances.setStatus(asked, 'needs_reauthorization', { from: ['active'] });
    const old = { refresh_failures: 6, refreshed_at: NOW - 9 };
    await own.db.updateTable('tokens').set(old).where('instance_id', '=', unrenewed).execute();
    const write = {
      instance_id: undecided,
      operation: 'x',
      is_repeatable: 0,
      state: 'unknown',
      created_at: NOW,
    } as const;
    const writes = ['a', 'b'].map((key_hash) => ({ ...write, key_hash, request_hash: key_hash }));
    await own.db.insertInto('outbox').values(writes).execute();
    const [failing, held, letter, lagging, well] = [
      await list(),
      await list(),
      await list(),
      await list(),
      await list(),
    ];
    await own.runs.fail(await own.claimRun(failing), REFUSED, now - 200_000, now);
    await own.finish(await own.claimRun(held), { held: 3, heldRun: held.run, now: NOW + 5 });
    await own.bury(letter, undefined, NOW + 7);
    await own.hold(lagging);
    const early = (now - 31 * 60_000) * 1_000;
    await own.db
      .updateTable('records')
      .set((eb) => ({ change_seq: eb('id', '+', early) }))
      .where('list', '=', lagging.list)
      .execute();
    await own.db.updateTable('consumers').set({ cursor: 0 }).where('list', '=', lagging.list).execute();

    const notDue = own.db.updateTable('tokens').set({ refresh_due_at: now });
    await notDue.execute();
    const expected = [
      ['authorization', asked, null, null, expect.any(Number)],
      ['token', unrenewed, null, 6, NOW - 9],
      ['failing', failing.instanceId, 'contacts', null, NOW],
      ['held', held.instanceId, 'contacts', 3, NOW + 5],
      ['dead_letters', letter.instanceId, 'contacts', 1, NOW + 7],
      ['outbox', undecided, null, 2, NOW],
      ['lagging', lagging.instanceId, 'contacts', null, expect.any(Number)],
    ] as const;
    const all = await own.instances.list({ offset: 0, limit: 99, work });
    const found = await own.instances.troubles(work);
    expect(
      found.map(({ kind, instanceId, resource, count, since }) => [kind, instanceId, resource, count, since]),
    ).toEqual(expected);
    expect(found.map(({ detail }) => detail).filter((detail) => detail !== null)).toHaveLength(1);
    // The worst first.
    expect(all.map(({ id }) => id)).toEqual([...expected.map(([, id]) => id), well.instanceId]);
    for (const [filter, id] of expected) {
      expect(await own.instances.list({ filter, offset: 0, limit: 9, work }), filter).toMatchObject([{ id }]);
    }
    expect(await own.instances.troubles(work, well.instanceId)).toEqual([]);
    expect(await own.instances.troubles(work, held.instanceId)).toMatchObject([{ kind: 'held' }]);

    // A rotation that is overdue raises an alarm, too, whatever became of the refreshes.
    const overdue = { refresh_due_at: NOW, refreshed_at: NOW };
    await own.db.updateTable('tokens').set(overdue).where('instance_id', '=', well.instanceId).execute();
    const ofWell = await own.instances.troubles(work, well.instanceId);
    expect(ofWell).toMatchObject([{ kind: 'token', count: 0, since: NOW }]);
    await notDue.execute();

    // Nobody works on a resource that is gone, on what is paused, or for a handler that there is not.
    const kindsOf = async (of: typeof work) => (await own.instances.troubles(of)).map((row) => row.kind);
    expect(await kindsOf({ ...work, hasHandler: false })).not.toContain('lagging');
    expect(await kindsOf({ ...work, resources: ['tags'] })).toEqual(['authorization', 'token', 'outbox']);
    for (const { instanceId } of [failing, lagging])
      await own.dueLists.pause({ instanceId, resource: 'contacts' }, now);
    expect(await kindsOf(work)).toEqual(['authorization', 'token', 'held', 'dead_letters', 'outbox']);
    const paused = await own.instances.list({ filter: 'paused', offset: 0, limit: 9, work });
    expect(paused.map(({ id }) => id)).toEqual([failing.instanceId, lagging.instanceId]);
  });
});
