import * as fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { RunKey } from '../../src/store/runs.ts';
import { markDeletions } from '../../src/sync/deletions.ts';
import type { OwnLogic, ServiceDocument } from '../../src/sync/own-logic.ts';
import { retryParked } from '../../src/sync/own-logic-parking.ts';
import { writePage } from '../../src/sync/page.ts';
import { endSlice } from '../../src/sync/slice-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from '../../src/sync/slice-parts.ts';
import { NOW, openTestStore, pageOf } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const store = await openTestStore();
const context = { logger: testLogger().logger, signal: new AbortController().signal } as SliceContext;
const PAGE = 3;
const MOST_TRIES = 5;

/**
 * What comes between the own logic's work and the store. `dies` is what it is for the store when a process is killed;
 * `late` does its work when another worker has gone through all of a list that has changed; `overlaps`, when such a one
 * is in the midst of telling its first batch, which is written after that.
 */
const TROUBLES = [
  'throws',
  'dies',
  'paused',
  'taken over',
  'disconnected',
  'late',
  'overlaps',
  'none',
] as const;
type Trouble = (typeof TROUBLES)[number];

class Death extends Error {
  override readonly name = 'Death';
}

type Id = string | number;
/**
 * `slice` works on the run for so many pages at the most; the trouble comes with its first batch. `refuse` has the own
 * logic take no batch with this record, or take it again: while there is one, each slice is so many that a batch is parked.
 */
type Step = { put: Id } | { drop: Id } | { refuse: Id } | { slice: number; trouble: Trouble };

const textOf = (id: Id, version: number) => JSON.stringify({ id, version });

/** A service's list, its copy, and what an own logic makes of what it is told; all of them can be moved. */
async function newWorld() {
  const key: RunKey = { instanceId: await store.addInstance(), resource: 'contacts' };
  const service = new Map<Id, number>();
  const known = new Map<unknown, string>();
  const unknownChanges: unknown[] = [];
  const refused = new Set<unknown>();
  let trouble: Trouble = 'none';
  let clock = NOW;
  let other: { holdsBack?: () => Promise<void>; letGo(): Promise<void> } | undefined;

  const comesBetween: Record<Trouble, () => Promise<unknown>> = {
    throws: () => Promise.reject(new Error('afterwards')),
    dies: () => Promise.reject(new Death()),
    paused: () => store.instances.setStatus(key.instanceId, 'paused', { from: ['active'] }),
    'taken over': () => store.runs.claim(key),
    disconnected: () => store.tokens.disconnect(key.instanceId),
    late: async () => undefined,
    overlaps: async () => undefined,
    none: async () => undefined,
  };
  const ownLogic: OwnLogic = async ({ created, changed, deleted }) => {
    if ([...created, ...changed, ...deleted].some(({ id }) => refused.has(id)))
      throw new Error('Not this one.');
    const comes = trouble;
    trouble = 'none';
    const holdsBack = other?.holdsBack;
    if (comes === 'late' || comes === 'overlaps') {
      for (const id of service.keys()) service.set(id, (service.get(id) ?? 0) + 1);
      if (!service.delete('a')) service.set('a', 1);
    }
    if (comes === 'late') await slice(100);
    if (comes === 'overlaps') await beginOther();
    const keep = (document: ServiceDocument) => known.set(document.id, JSON.stringify(document));
    created.forEach(keep);
    // As a statement that changes a row does nothing where there is none.
    for (const document of changed) {
      if (known.has(document.id)) keep(document);
      else if (comes !== 'late' && comes !== 'overlaps') unknownChanges.push(document.id);
    }
    for (const { id } of deleted) known.delete(id);
    await comesBetween[comes]();
    await holdsBack?.();
  };
  const parts = { ...store, ownLogic, ownLogicTimeoutMs: 60_000, now: () => clock } as unknown as SyncParts;

  /** Another worker takes the run over, and gets as far as to have told its first batch, if it has any. */
  async function beginOther() {
    const hasTold = Promise.withResolvers<void>();
    const mayWrite = Promise.withResolvers<void>();
    other = {
      async holdsBack() {
        delete other?.holdsBack;
        hasTold.resolve();
        await mayWrite.promise;
      },
      async letGo() {
        mayWrite.resolve();
        await done;
      },
    };
    const done = slice(100);
    await Promise.race([hasTold.promise, done]);
  }

  /** Some pages of the list as it is by then; and the end of the run, when it comes to it. */
  async function slice(pages: number) {
    clock += 60_000;
    await store.instances.setStatus(key.instanceId, 'active', { from: ['paused', 'disconnected'] });
    await store.runs.start(key, clock);
    const claimed = await store.runs.claim(key);
    const instance = await store.instances.find(key.instanceId);
    if (claimed === undefined || instance === undefined) return expect.unreachable();
    const claim = { ...key, fence: claimed.fence };
    const work = { claim, instance, resource: { name: 'contacts' } } as SliceWork;
    let run = claimed;
    try {
      await retryParked(parts, work, run, () => false, context);
      for (let asked = 0; run.phase === 'pages'; asked++) {
        if (asked === pages) return;
        const from = Number(run.cursor ?? 0);
        const texts = [...service].slice(from, from + PAGE).map(([id, version]) => textOf(id, version));
        const page = pageOf(texts, from + PAGE < service.size ? String(from + PAGE) : null);
        const written = await writePage(parts, work, run, page, context);
        if (written === undefined) return;
        run = written;
      }
      if ((await markDeletions(parts, work, run, () => false, context)) === 'done') {
        await store.runs.finish(claim, clock);
      }
    } catch (error) {
      if (!(error instanceof Error && error.cause instanceof Error && error.cause.name === 'Death')) {
        await endSlice(parts, claim, run, error, context);
      }
    }
  }

  return {
    key,
    service,
    known,
    unknownChanges,
    parts,
    slice,
    async step(step: Step) {
      if ('put' in step) service.set(step.put, (service.get(step.put) ?? 0) + 1);
      else if ('drop' in step) service.delete(step.drop);
      else if ('refuse' in step) refused.delete(step.refuse) || refused.add(step.refuse);
      else {
        trouble = step.trouble;
        for (let tries = refused.size > 0 ? MOST_TRIES : 1; tries > 0; tries--) {
          await slice(step.slice);
          await other?.letGo();
          other = undefined;
        }
        trouble = 'none';
      }
    },
    /** Until a whole run has gone well, from its first page on. */
    async calmDown() {
      refused.clear();
      for (let runs = 0; runs < 3; ) {
        await slice(100);
        if ((await store.runs.find(key))?.state === 'idle') runs++;
      }
    },
  };
}

async function copyOf({ instanceId, resource }: RunKey): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of store.records.stream(instanceId, resource)) texts.push(text);
  return texts.sort();
}

const ids: Id[] = [1, '1', '#1', 'a', 'b', 'c', 'd'];
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ put: fc.constantFrom(...ids) }),
  fc.record({ drop: fc.constantFrom(...ids) }),
  fc.record({ refuse: fc.constantFrom(...ids) }),
  fc.record({ slice: fc.integer({ min: 1, max: 4 }), trouble: fc.constantFrom(...TROUBLES) }),
);
const calm = { slice: 100, trouble: 'none' } as const;
const put = (...some: Id[]) => some.map((id) => ({ put: id }));
const refuse = (...some: Id[]) => some.map((id) => ({ refuse: id }));
/** Parked as new, and changed since; parked as changed, gone since, and parked as new. */
const parked: [Step[]][] = [
  [[...put('a', 'b'), ...refuse('a'), calm, ...put('b'), calm]],
  [
    [
      ...[...put('a', 'b'), calm, ...put('a', 'b'), ...refuse('a'), calm],
      ...[{ drop: 'b' }, calm, ...refuse('b'), ...put('b'), calm, ...refuse('a', 'b'), calm],
    ],
  ],
];
/** A new record, a changed one and one that is gone, each told in trouble; by then it is otherwise. */
const examples = TROUBLES.flatMap((trouble): [Step[]][] => {
  const troubled = { slice: 100, trouble };
  return [
    [[{ put: 'b' }, troubled, { drop: 'b' }]],
    [[{ put: 'b' }, calm, { put: 'b' }, troubled, { drop: 'b' }]],
    [[{ put: 'b' }, calm, { drop: 'b' }, troubled, { put: 'b' }]],
  ];
}).concat(parked);

test('whatever comes between its work and the store, and whatever the list does meanwhile, the own logic ends with what the service has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { key, service, known, unknownChanges, step: take, calmDown } = await newWorld();
      for (const one of steps) await take(one);
      await calmDown();
      const inService = [...service].map(([id, version]) => textOf(id, version)).sort();
      expect([...known.values()].sort()).toEqual(inService);
      expect(await copyOf(key)).toEqual(inService);
      expect(unknownChanges).toEqual([]);
      expect(await store.runs.find(key)).toMatchObject({ stored: service.size });
      expect(await store.inDoubt.missing(key, 10)).toEqual([]);
    }),
    { numRuns: 100, examples },
  );
});

/** Counts what is written into the table of what is in doubt from now on. */
async function watchNotes(): Promise<() => Promise<number>> {
  await sql`create temp table noted (id text)`.execute(store.db);
  await sql`create temp trigger on_note after insert on main.in_doubt
    begin insert into noted values (new.id); end`.execute(store.db);
  return async () => {
    const { rows } = await sql<{ count: number }>`select count(*) as count from noted`.execute(store.db);
    return rows[0]?.count ?? -1;
  };
}

test('a note costs only where something is told: none for what is unchanged, and none without own logic', async () => {
  const noted = await watchNotes();
  const world = await newWorld();
  for (const id of ids) await world.step({ put: id });
  await world.slice(100);
  expect(await noted()).toBe(ids.length);
  await world.slice(100);
  expect(await noted()).toBe(ids.length);

  world.parts.ownLogic = undefined;
  await world.step({ put: 'a' });
  await world.step({ drop: 'b' });
  await world.slice(100);
  expect(await noted()).toBe(ids.length);
  expect((await copyOf(world.key)).length).toBe(ids.length - 1);
});

test('what is in doubt when the own logic is taken out is settled without it', async () => {
  const world = await newWorld();
  await world.step({ put: 'a' });
  await world.step({ slice: 100, trouble: 'dies' });
  expect(await store.inDoubt.missing(world.key, 10)).toEqual(['a']);
  world.parts.ownLogic = undefined;
  await world.step({ drop: 'a' });
  await world.slice(100);
  expect(await store.inDoubt.missing(world.key, 10)).toEqual([]);
  expect(await store.runs.find(world.key)).toMatchObject({ state: 'idle', deleted: 0, stored: 0 });
});

test('own logic that does not take that something is gone which it may have gets it as a parked batch', async () => {
  const world = await newWorld();
  const told: unknown[] = [];
  world.parts.ownLogic = async ({ deleted }) => {
    told.push(...deleted.map(({ id }) => id));
    throw new Error('Not now.');
  };
  await world.step({ put: 1 });
  await world.slice(100);
  await world.step({ drop: 1 });
  for (let tries = 0; tries < 5; tries++) await world.slice(100);
  expect(told).toEqual(Array(5).fill(1));
  expect(await store.runs.find(world.key)).toMatchObject({ state: 'idle', stored: 0 });
  expect(await store.parked.list(world.key, 5)).toMatchObject([{ count: 1, first_id: '#1', tries: 5 }]);
});
