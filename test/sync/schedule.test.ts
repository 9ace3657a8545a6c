import { describe, expect, test } from 'vitest';
import type { List } from '../../src/store/runs.ts';
import type { Resource } from '../../src/sync/resource.ts';
import {
  afterFullRun,
  failedPauseMs,
  fullRunAfter,
  isCheckDue,
  nextCheck,
  prepareLists,
  takeDue,
} from '../../src/sync/schedule.ts';
import { collect, DATABASES, NOW, openTestStore } from '../store/test-store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const RESOURCES: Resource[] = ['contacts', 'conversations'].map((name) => {
  return { name, title: name, route: `/${name}` };
});
const CONTACTS = RESOURCES.slice(0, 1);
const [RESOURCE = expect.unreachable()] = CONTACTS;
const INTERVALS = { intervalMs: HOUR_MS, checkIntervalMs: MINUTE_MS };

test.each([
  ['usually, in ten minutes', 'refused', HOUR_MS, 10 * MINUTE_MS],
  ['with a shorter interval, after that', 'refused', 3 * MINUTE_MS, 3 * MINUTE_MS],
  ['after an outage, within two minutes', 'timeout', HOUR_MS, 1.5 * MINUTE_MS],
] as const)('the next run after a failed one starts: %s', (_what, kind, intervalMs, afterMs) => {
  expect(failedPauseMs(intervalMs, kind)).toBe(afterMs);
});

/** Whether a pause is the interval, or earlier by a tenth at most. */
const isAbout = (ms: number, intervalMs: number) => ms >= 0.9 * intervalMs && ms <= intervalMs;

const LIST = { id: 1, full_run: 7, caught: 0, check_every: 1, interval_minutes: null };
const RUN = { requests: 12, behind: 0, is_unsure: 0 } as const;

test.each<[string, object, object, number, number]>([
  ['a short list is read again after the interval', {}, {}, 1, HOUR_MS],
  ['a long one after ten times its share of the limit', {}, { requests: 1_200 }, 1, 100 * MINUTE_MS],
  ['the longest one after a day', {}, { requests: 99_999 }, 1, 24 * HOUR_MS],
  ['after an unsure run the interval counts', {}, { requests: 1_200, is_unsure: 1 }, 1, HOUR_MS],
  ['after the first run the interval counts', { full_run: null }, { requests: 1_200 }, 1, HOUR_MS],
  ['its own interval counts', { interval_minutes: 30 }, { requests: 1_200 }, 1, HOUR_MS / 2],
  ['the first run says nothing about checks', { full_run: null }, { behind: 500 }, 1, HOUR_MS],
  ['nine changes behind the head say nothing', {}, { behind: 9 }, 1, HOUR_MS],
  ['more changes than checks caught halve them', { caught: 9 }, { behind: 10 }, 2, HOUR_MS],
  ['as many do not', { caught: 10 }, { behind: 10 }, 1, HOUR_MS],
  ['16 intervals are the longest pause', { check_every: 16 }, { behind: 10 }, 16, HOUR_MS],
  [
    'checks that caught nearly all come often again',
    { check_every: 8, caught: 10 },
    { behind: 1 },
    1,
    HOUR_MS,
  ],
  ['checks that caught less stay rare', { check_every: 8, caught: 10 }, { behind: 2 }, 8, HOUR_MS],
  ['where checks are rare, full runs are not', { check_every: 2 }, { requests: 1_200 }, 2, HOUR_MS],
])('after a full run: %s', (_what, list, run, every, pauseMs) => {
  const next = afterFullRun({ ...LIST, ...list }, { ...RUN, ...run }, RESOURCE, INTERVALS, 120, NOW);
  expect(next).toEqual({
    full_due_at: expect.toSatisfy((at: number) => isAbout(at - NOW, pauseMs)),
    check_due_at: expect.toSatisfy((at: number) => isAbout(at - NOW, every * MINUTE_MS)),
    check_every: every,
  });
});

test('lists that were read together spread over their interval, and keep their places', () => {
  const ids = Array.from({ length: 60 }, (_, n) => n + 1);
  let dates = ids.map(() => NOW);
  const next = (at: number, id: number) =>
    afterFullRun({ ...LIST, id }, RUN, RESOURCE, INTERVALS, 120, at + 1_000).full_due_at;
  for (let round = 0; round < 12; round++) {
    const before = dates;
    dates = before.map((at, index) => next(at, ids[index] ?? 0));
    for (const [index, at] of dates.entries()) {
      expect(isAbout(at - 1_000 - (before[index] ?? 0), HOUR_MS)).toBe(true);
    }
  }
  const minutes = dates.map((at) => Math.floor((at % HOUR_MS) / MINUTE_MS));
  expect(new Set(minutes).size).toBeGreaterThan(45);
  expect(dates.map((at, index) => next(at, ids[index] ?? 0) - at)).toEqual(ids.map(() => HOUR_MS));
});

test('without checks, a full run leaves none, and long lists keep their interval', () => {
  const never = { ...INTERVALS, checkIntervalMs: 0 };
  const next = afterFullRun(LIST, { ...RUN, requests: 1_200 }, RESOURCE, never, 120, NOW);
  expect(next).toMatchObject({ check_due_at: null, check_every: 1 });
  expect(isAbout(next.full_due_at - NOW, HOUR_MS)).toBe(true);
});

test.each([
  ['unchanged', 1, { checked_at: NOW, check_every: 1, ran_out: 0 }],
  ['changed', 1, { checked_at: NOW, check_every: 1, ran_out: 0 }],
  ['failed', 1, { check_every: 1, ran_out: 1 }],
  ['ran_out', 0, { check_every: 1, ran_out: 1 }],
  ['ran_out', 1, { check_every: 2, ran_out: 0 }],
] as const)('a check that is %s after %d that ran out leaves its next one', (outcome, ran_out, left) => {
  const next = nextCheck({ id: 1, check_every: 1, ran_out }, { outcome, requestsSoFar: 5 }, MINUTE_MS, NOW);
  const isNext = (at: number) => isAbout(at - NOW, left.check_every * MINUTE_MS);
  expect(next).toEqual({ ...left, check_after: 5, check_due_at: expect.toSatisfy(isNext) });
});

test.each<[string, boolean, object, object, number]>([
  ['a minute after the run’s start', true, {}, {}, MINUTE_MS],
  ['not earlier', false, {}, {}, MINUTE_MS - 1],
  ['not before the first page', false, {}, { pages: 0 }, MINUTE_MS],
  ['not before its own time', false, { check_due_at: NOW + 2 * MINUTE_MS }, {}, MINUTE_MS],
  ['more rarely where it found too little', false, { check_every: 2 }, {}, MINUTE_MS],
  ['not before the run sent as many requests as checks', false, { check_after: 11 }, {}, MINUTE_MS],
])('a check is due inside a full run: %s', (_what, isDue, list, run, afterMs) => {
  const given = { check_due_at: null, check_every: 1, check_after: 10, ...list };
  const of = { pages: 8, requests: 10, started_at: NOW, ...run };
  expect(isCheckDue(given, of, MINUTE_MS, NOW + afterMs)).toBe(isDue);
  expect(isCheckDue(given, of, 0, NOW + afterMs)).toBe(false);
});

test('a check that ran out wants a full run, at most once an interval', () => {
  const after = (full_at: number | null) =>
    fullRunAfter({ full_at, interval_minutes: null }, RESOURCE, HOUR_MS, NOW) - NOW;
  expect([after(null), after(NOW - 2 * HOUR_MS), after(NOW - 600_000)]).toEqual([0, 0, HOUR_MS - 600_000]);
});

describe.each(DATABASES)('on %s', (kind) => {
  async function open() {
    const store = await openTestStore(kind);
    const parts = { dueLists: store.dueLists, ...INTERVALS };
    const due = async (at: number, { resources = CONTACTS } = {}) =>
      (await collect(takeDue({ ...parts, resources, now: () => at }))).flat();
    const prepare = (at: number, given: object = {}) =>
      prepareLists({ ...parts, resources: CONTACTS, now: () => at, ...given });
    return { ...store, due, prepare };
  }
  const keys = (jobs: readonly { instanceId: string; resource: string }[]) =>
    jobs.map(({ instanceId, resource }) => `${instanceId} ${resource}`).toSorted();

  test('every list of an active instance starts once', async () => {
    const { addInstance, instances, due, prepare, runs } = await open();
    const [one, two, paused] = [await addInstance(), await addInstance(), await addInstance()];
    await instances.setStatus(paused, 'paused', { from: ['active'] });
    await prepare(NOW, { resources: RESOURCES });
    const all = [one, two].flatMap((id) => RESOURCES.map(({ name }) => `${id} ${name}`));
    const started = await due(NOW, { resources: RESOURCES });
    expect(keys(started)).toEqual(all);
    expect((await runs.lists(paused)).map(({ run }) => run)).toEqual([undefined, undefined]);
    // An open run needs a job, as Redis may have lost the old one.
    expect(keys(await due(NOW + 2 * HOUR_MS, { resources: RESOURCES }))).toEqual(all);
    expect(await due(NOW + 2 * HOUR_MS, { resources: RESOURCES })).toEqual([]);
  });

  test('a start gives lists their checks, and a shorter interval brings full runs forward', async () => {
    const { copy, prepare, dueLists, list } = await open();
    const [usual, own] = [await copy([]), await copy([])];
    await dueLists.setInterval(own, 44_640, 44_640 * MINUTE_MS);
    await prepare(NOW + 1, { intervalMs: 30 * MINUTE_MS });
    const dates = async (key: typeof usual) => {
      const { full_due_at, check_due_at, due_at }: List = await list(key);
      return [full_due_at - NOW, check_due_at, due_at];
    };
    expect(await dates(usual)).toEqual([30 * MINUTE_MS, NOW + 1, NOW + 1]);
    expect(await dates(own)).toEqual([44_640 * MINUTE_MS, NOW + 1, NOW + 1]);
  });
});
