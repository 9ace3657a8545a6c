import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StoreError } from '../../src/store/database.ts';
import type { CheckOutcome } from '../../src/sync/check.ts';
import { runSlice } from '../../src/sync/run.ts';
import { MOST_CHECK_PAGES, takeDue } from '../../src/sync/schedule.ts';
import { collect, DATABASES, NOW, openTestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import {
  ASKED_ITEMS,
  controlOf,
  HOUR_MS,
  ITEMS,
  type ListRecord,
  ListService,
  MINUTE_MS,
  ORDERS,
  partsOf,
} from './list-service.ts';
import { type Crash, openWorkerDatabase } from './worker-database.ts';

/*
 * The truth of the copy on random histories of a list and of two workers. The service keeps to what the app counts on:
 *
 * - In a list by name, a record moves once in two full runs at most: past the reader twice in a row, it would be deleted.
 * - A page says falsely that the list ends once in two full runs at most, no record moves in these two in a list by
 *   name, and the full run before has missed nothing.
 * - In a list by activity, no page is full of records that moved unchanged since the last check that met them.
 * - No record of it comes to the front between two pages of a check that has not met it.
 * - Pages hold two records or more, except at the end of the list.
 * - A person confirms held deletions only if the service has none of these records.
 */

/** With it, every rule that was broken on purpose was noticed. */
const SEED = 14;
const HISTORIES = { sqlite: 80, postgres: 30 };

/** What happens before a request is answered, or between two slices. */
const event = fc.record({
  what: fc.constantFrom(
    ...'add change change move move delete delete return tail tail tail tail purge'.split(' '),
    ...'broken empty deny stop takeover sync pause resume'.split(' '),
  ),
  which: fc.nat(99),
  name: fc.nat(99),
});

const crashAt = (min: number, max: number): fc.Arbitrary<Crash> =>
  fc.record({ at: fc.integer({ min, max }), how: fc.constantFrom('before', 'after', 'taken back') });

const slice = fc.record({
  step: fc.constant('slice' as const),
  worker: fc.constantFrom(0, 1),
  /** The time since the slice before, in milliseconds. */
  pauseMs: fc.constantFrom(0, MINUTE_MS, HOUR_MS, HOUR_MS),
  /** By its requests, in order. */
  events: fc.array(fc.option(event, { freq: 2 }), { maxLength: 12 }),
  failsChecks: fc.boolean(),
  crash: fc.option(crashAt(1, 8), { freq: 1 }),
});

/** Changes, a check that may be cut short, and a whole one. */
const check = fc.record({
  step: fc.constant('check' as const),
  changes: fc.integer({ min: 0, max: 9 }),
  crash: fc.option(crashAt(2, 4), { freq: 2 }),
});

/** Two full runs. In a list by activity, a record comes to the front behind the back of both. */
const hiding = fc.record({
  step: fc.constant('hiding' as const),
  failsChecks: fc.tuple(fc.boolean(), fc.boolean()),
  events: fc.constantFrom([], Array(12).fill({ what: 'tail', which: 0, name: 0 })),
  crash: fc.option(crashAt(2, 4), { freq: 1 }),
});

const history = fc.record({
  order: fc.constantFrom(...ORDERS),
  sizes: fc.array(fc.integer({ min: 2, max: 4 }), { minLength: 1, maxLength: 3 }),
  blanks: fc.constantFrom(0, 0, 0, 1, 8),
  resource: fc.constantFrom(ITEMS, ITEMS, ASKED_ITEMS),
  records: fc.integer({ min: 1, max: 14 }),
  msOfRequest: fc.constantFrom(0, 20_000, MINUTE_MS + 1),
  steps: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: slice },
      { weight: 3, arbitrary: check },
      { weight: 3, arbitrary: hiding },
      { weight: 2, arbitrary: fc.record({ step: fc.constant('event' as const), event }) },
      { weight: 1, arbitrary: fc.record({ step: fc.constantFrom('confirm', 'day') }) },
    ),
    { minLength: 3, maxLength: 12 },
  ),
  waitsForBrake: fc.boolean(),
});

type Of<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;

const { logger } = testLogger();

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const databases = [await openWorkerDatabase(store.url), await openWorkerDatabase(store.url)];

  /** Plays a history, and looks at the copy after every commit. */
  async function play({
    order,
    sizes,
    resource,
    records,
    steps,
    waitsForBrake,
    ...given
  }: Of<typeof history>) {
    const key = { instanceId: await store.addInstance(), resource: resource.name };
    const service = new ListService({ order, sizes, blanks: given.blanks });
    for (let n = 0; n < records; n++) service.add(`r${n}`, (n * 37) % 100);
    let { msOfRequest } = given;
    let now = NOW;
    /** Full runs that have finished: the three moments below are such numbers. */
    let runs = 0;
    const movedIn = new Map<ListRecord, number>();
    let emptyIn = -9;
    /** When changes behind the first pages were last possible that no check meets. */
    let gapIn = -9;
    /** Records of a list by activity that moved unchanged, by requests so far. Then the last first page of each worker. */
    const quiet = new Map<ListRecord, number>();
    const heads = new Map<string, number>();
    let outcome: CheckOutcome | undefined;
    let isChecking = false;
    /** By the last full run. */
    let missing = 0;

    const common = { resources: [resource], now: () => now };
    const control = controlOf(store, common.now);
    const workers = databases.map((db, n) => {
      const worker = `worker ${n}`;
      const parts = partsOf(service, db, {
        ...{ ...common, worker },
        onCheck(end) {
          outcome = end.outcome;
          isChecking = false;
          if (outcome === 'ran_out') gapIn = runs;
          if (outcome !== 'changed' && outcome !== 'unchanged') return;
          for (const [record, at] of quiet) if (at <= (heads.get(worker) ?? -1)) quiet.delete(record);
        },
        onRunEnd(end) {
          if (end.outcome === 'failed') gapIn = runs;
          else runs++;
        },
      });
      db.onCommit = look;
      return { db, worker, parts };
    });

    const stored = new Map<string, { version: number; isLive: boolean }>();
    let last = 0;
    let list = 0;
    /** Nothing was told as deleted that is there, and no document is older than before. */
    async function look() {
      const changed = store.db.selectFrom('records').where('list', '=', list);
      const rows = await changed.selectAll().where('change_seq', '>', last).orderBy('change_seq').execute();
      for (const { external_id: id, document, deleted_at, change_seq } of rows) {
        const { version } = JSON.parse(document ?? '');
        const isLive = deleted_at === null;
        const born = service.records.get(id)?.born;
        if (version < (stored.get(id)?.version ?? 0)) throw new Error(`${id} became older`);
        if (!isLive && born !== undefined && born <= version) throw new Error(`${id} was told as deleted`);
        stored.set(id, { version, isLive });
        last = Math.max(last, change_seq);
      }
    }
    const copy = () =>
      new Map([...stored].flatMap(([id, { version, isLive }]) => (isLive ? [[id, version]] : [])));
    const truth = () => new Map([...service.records].map(([id, { version }]) => [id, version]));

    const mayLose = (since = -9) => runs >= Math.max(since, emptyIn) + 2;
    /** The place in a list by activity up to which a check has read. */
    let checkedTo = Number.POSITIVE_INFINITY;
    const move = (record: ListRecord, name: number) => {
      if (order === 'activity') {
        if (record.place > checkedTo) return;
        if (!quiet.has(record) && quiet.size + 1 >= Math.min(...sizes)) return;
        quiet.set(record, service.requests.length);
        service.move(record);
      } else if (order === 'name' && mayLose(movedIn.get(record))) {
        movedIn.set(record, runs);
        service.move(record, name);
      }
    };
    const change = (record: ListRecord) => {
      if (order === 'activity' && record.place > checkedTo) return;
      service.change(record);
      quiet.delete(record);
    };
    const remove = (record: ListRecord) => {
      service.records.delete(record.id);
      quiet.delete(record);
    };

    /** Lets something happen to the service. @returns what the request meets, if it is at one */
    function happen(
      { what, which, name }: Of<typeof event>,
      isAtRequest: boolean,
    ): 'broken' | 'empty' | undefined {
      const all = [...service.records.values()].toSorted((a, b) => a.place - b.place);
      const record = all[which % all.length];
      const gone = [...stored.keys()].filter((id) => !service.records.has(id));
      if (what === 'add') service.add(`n${service.requests.length}-${which}`, name);
      if (what === 'return' && gone.length > 0) service.add(gone[which % gone.length] ?? '', name);
      if (what === 'purge') for (const some of all.slice(1 + all.length / 4)) remove(some);
      if (what === 'change' && record) change(record);
      if (what === 'move' && record) move(record, name);
      if (what === 'delete' && record) remove(record);
      const tail = all.at(-1);
      // It may be in front of a reader, and is behind it then.
      if (what === 'tail' && tail) order === 'activity' ? change(tail) : move(tail, 0);
      if (what === 'deny') service.deniesRecords = isAtRequest;
      if (what === 'empty' && isAtRequest && missing === 0 && mayLose(Math.max(-9, ...movedIn.values()))) {
        emptyIn = runs;
        gapIn = runs;
        heads.clear();
        return 'empty';
      }
      return what === 'broken' ? 'broken' : undefined;
    }

    /** Lets something happen to the list, while a worker has an answer that it has not read. */
    async function meddle({ what }: Of<typeof event>, by?: { worker: number; stop: AbortController }) {
      if (what === 'stop') by?.stop.abort();
      if (what === 'takeover' && by) await playSlice(1 - by.worker, {});
      if (what === 'sync') await control.syncNow(key.instanceId, key.resource);
      if (what === 'pause') await control.pause(key.instanceId, key.resource);
      if (what === 'resume') await control.resume(key.instanceId, key.resource);
    }

    const answers = new Map<string, Pick<ListService, 'onRequest' | 'onAnswer'>>();
    service.onRequest = (request) => answers.get(request.worker)?.onRequest(request);
    service.onAnswer = (request) => answers.get(request.worker)?.onAnswer(request);

    async function playSlice(number: number, played: Partial<Of<typeof slice>> & { hides?: boolean }) {
      const { db, worker, parts } = workers[number] ?? expect.unreachable();
      const { events = [], failsChecks = false, hides = false } = played;
      const stop = new AbortController();
      const { run } = await store.list(key);
      let isOfRun = run?.finished_at === null && run.pages === 0;
      let count = 0;
      let hidden = order === 'activity' && hides ? service.records.get('r0') : undefined;
      if (hidden) for (const record of service.records.values()) if (record !== hidden) change(record);
      answers.set(worker, {
        async onRequest({ after, record }) {
          now += msOfRequest;
          const happens = events[count++];
          checkedTo = isChecking && after !== null ? Number.parseInt(after, 10) : Number.POSITIVE_INFINITY;
          if (happens?.what === 'empty') missing = (await store.list(key)).missing;
          const fault = happens ? happen(happens, true) : undefined;
          if (hidden && after !== null && service.records.has(hidden.id)) {
            change(hidden);
            hidden = undefined;
          }
          if (after !== null || record !== undefined) return fault;
          if (fault !== 'empty') heads.set(worker, service.requests.length);
          isChecking = !isOfRun;
          isOfRun = false;
          return failsChecks && isChecking ? 'broken' : fault;
        },
        async onAnswer() {
          const happens = events[count - 1];
          if (happens) await meddle(happens, { worker: number, stop });
        },
      });
      db.revive(played.crash ?? null);
      const context = { logger, signal: stop.signal, othersWait: () => true };
      await runSlice(parts, key, context).catch((error) => {
        if (!(error instanceof StoreError)) throw error;
      });
      // A request that was broken off may still be under way.
      answers.delete(worker);
      await service.idle(worker);
      db.revive(null);
      // A check that ran out may have died before it said so.
      if (count >= MOST_CHECK_PAGES) gapIn = runs;
      service.deniesRecords = false;
      isChecking = false;
      checkedTo = Number.POSITIVE_INFINITY;
      await look();
    }

    /** In a list by activity, a check with nothing else under way finds every change. */
    async function playCheck({ changes, crash }: Of<typeof check>) {
      await control.resume(key.instanceId, key.resource);
      while ((await store.list(key)).run?.finished_at === null) await playRun();
      for (let n = 0; n < changes; n++) happen({ what: 'tail', which: 0, name: 0 }, false);
      now += 16 * MINUTE_MS;
      if (crash !== null) await playSlice(0, { crash });
      now += 16 * MINUTE_MS;
      outcome = undefined;
      await playSlice(0, {});
      const isWhole = outcome === 'unchanged' || outcome === 'changed';
      if (order !== 'activity' || !isWhole || runs < gapIn + 2) return;
      for (const [id, version] of truth()) expect([id, copy().get(id)]).toEqual([id, version]);
    }

    async function confirm() {
      const { id, held_run } = await store.list(key);
      const { oldest } = await store.deletions.findUnseen(id, held_run ?? 0, 1_000);
      if (oldest.some(({ externalId }) => service.records.has(externalId))) return;
      await control.confirmDeletions(key.instanceId, key.resource);
      await look();
    }

    /** A full run that nobody disturbs. */
    async function playRun() {
      const before = runs;
      await store.runs.start(key.instanceId, [key.resource], now);
      for (let slices = 0; runs === before; slices++) {
        if (slices > 50) throw new Error('a run does not end');
        await playSlice(0, {});
      }
    }

    await store.runs.start(key.instanceId, [key.resource], now);
    list = (await store.list(key)).id;
    for (const played of steps) {
      if (played.step === 'slice') {
        now += played.pauseMs;
        await collect(takeDue({ dueLists: store.dueLists, ...common }));
        await playSlice(played.worker, played);
      } else if (played.step === 'check') await playCheck(played);
      else if (played.step === 'hiding') {
        for (const [n, failsChecks] of played.failsChecks.entries()) {
          await store.runs.start(key.instanceId, [key.resource], now);
          const { events, crash } = played;
          await playSlice(0, { failsChecks, events, hides: true, crash: n === 0 ? null : crash });
        }
      } else if (played.step === 'event') {
        happen(played.event, false);
        await meddle(played.event);
      } else if (played.step === 'day') now += 25 * HOUR_MS;
      else await confirm();
    }

    // After two whole runs the copy is equal, except for what the brake holds. They are quick: a check that overtakes its
    // run may run out, and then the run deletes nothing.
    msOfRequest = 0;
    await control.resume(key.instanceId, key.resource);
    if ((await store.list(key)).run?.finished_at === null) await playRun();
    await playRun();
    await playRun();
    const there = [...copy()].filter(([id]) => service.records.has(id ?? ''));
    expect(new Map(there)).toEqual(truth());
    if (copy().size > there.length) {
      expect((await store.list(key)).held).toBeGreaterThan(0);
      if (waitsForBrake) now += 25 * HOUR_MS;
      else await confirm();
      await playRun();
      await playRun();
    }
    expect(copy()).toEqual(truth());
    expect((await store.list(key)).stored).toBe(truth().size);
  }

  test('no live record is told as deleted, and the copy becomes equal', async () => {
    await fc.assert(fc.asyncProperty(history, play), {
      seed: SEED,
      numRuns: Number(process.env.TRUTH_HISTORIES ?? HISTORIES[kind]),
      endOnFailure: true,
    });
  });
});
