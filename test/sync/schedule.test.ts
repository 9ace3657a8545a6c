import { describe, expect, test } from 'vitest';
import { nextStartAt, startDueRuns } from '../../src/sync/schedule.ts';
import { DATABASES, NOW, openTestStore } from '../store/test-store.ts';

const MINUTE_MS = 60_000;
const INTERVAL_MS = 60 * MINUTE_MS;
const RESOURCES = ['contacts', 'conversations'].map((name) => ({ name, title: name, route: `/${name}` }));

test.each([
  ['after a finished one, with the interval', null, INTERVAL_MS, INTERVAL_MS],
  ['after a failed one, in ten minutes', 'refused', INTERVAL_MS, 10 * MINUTE_MS],
  ['after a failed one, with a shorter interval', 'refused', 3 * MINUTE_MS, 3 * MINUTE_MS],
  ['after an outage, within two minutes', 'timeout', INTERVAL_MS, 1.5 * MINUTE_MS],
] as const)('the next run starts: %s', (_what, kind, intervalMs, afterMs) => {
  const state = kind === null ? 'finished' : 'failed';
  expect(nextStartAt({ state, finished_at: NOW, error_kind: kind }, intervalMs)).toBe(NOW + afterMs);
});

describe.each(DATABASES)('on %s', (kind) => {
  async function open() {
    const store = await openTestStore(kind);
    const due = (at: number, resources = RESOURCES) =>
      startDueRuns({ runs: store.runs, resources, intervalMs: INTERVAL_MS, now: () => at });
    return { ...store, due };
  }
  const keys = (open: readonly { instanceId: string; resource: string }[]) =>
    open.map(({ instanceId, resource }) => `${instanceId} ${resource}`).toSorted();

  test('every list of an active instance starts once', async () => {
    const { addInstance, instances, due, runs } = await open();
    const [one, two, paused] = [await addInstance(), await addInstance(), await addInstance()];
    await instances.setStatus(paused, 'paused', { from: ['active'] });
    const all = [one, two].flatMap((id) => RESOURCES.map(({ name }) => `${id} ${name}`));
    const started = await due(NOW);
    expect(keys(started)).toEqual(all);
    expect(await runs.lists(paused)).toEqual([]);
    // An open run needs a job, as Redis may have lost the old one.
    expect(await due(NOW + 2 * INTERVAL_MS)).toEqual(started);
  });

  test('finished and failed lists start at their time', async () => {
    const { copy, claimRun, runs, due, list } = await open();
    const contacts = RESOURCES.slice(0, 1);
    const all = [await copy([]), await claimRun(), await claimRun(await copy([]))] as const;
    const [, refused, outage] = all;
    await runs.fail(refused, { kind: 'refused', detail: 'x' }, NOW);
    await runs.fail(outage, { kind: 'server_error', detail: 'x' }, NOW);
    const states = async (at: number) => {
      await due(at, contacts);
      return Promise.all(all.map(async (key) => (await list(key)).run?.state));
    };
    expect(await states(NOW + 1.5 * MINUTE_MS - 1)).toEqual(['finished', 'failed', 'failed']);
    expect(await states(NOW + 1.5 * MINUTE_MS)).toEqual(['finished', 'failed', 'waiting']);
    expect(await states(NOW + 10 * MINUTE_MS - 1)).toEqual(['finished', 'failed', 'waiting']);
    expect(await states(NOW + 10 * MINUTE_MS)).toEqual(['finished', 'waiting', 'waiting']);
    expect(await states(NOW + INTERVAL_MS)).toEqual(['waiting', 'waiting', 'waiting']);
  });

  test('a list starts by its own interval or its resource’s, unless it is paused', async () => {
    const { copy, claimRun, due, list, runs } = await open();
    const resources = [{ name: 'contacts', title: 'x', route: '/x', intervalMinutes: 30 }];
    const [usual, own, paused] = [await copy([]), await copy([]), await copy([])];
    await runs.setInterval(own, 44_640);
    await runs.pause(paused, NOW);
    const states = async (at: number) => {
      await due(at, resources);
      return Promise.all([usual, own, paused].map(async (key) => (await list(key)).run?.state));
    };
    expect(await states(NOW + 30 * MINUTE_MS - 1)).toEqual(['finished', 'finished', 'finished']);
    expect(await states(NOW + 30 * MINUTE_MS)).toEqual(['waiting', 'finished', 'finished']);
    expect(await states(NOW + 44_640 * MINUTE_MS - 1)).toEqual(['waiting', 'finished', 'finished']);
    expect(await states(NOW + 44_640 * MINUTE_MS)).toEqual(['waiting', 'waiting', 'finished']);
    await runs.setInterval(own, null);
    await runs.finish(await claimRun(own), 0, NOW);
    expect((await states(NOW + 30 * MINUTE_MS))[1]).toBe('waiting');
  });

  test('a waiting run gets its job at its time, and another version’s run none', async () => {
    const { claimRun, runs, due, addInstance } = await open();
    const claim = await claimRun();
    await runs.wait(claim, { for: 'limit', until: NOW + 5, requests: 0, refused: 0 });
    const other = await addInstance();
    await runs.start(other, ['teammates'], NOW);
    const open_ = async (at: number) =>
      keys(await due(at)).filter((key) => key !== `${other} contacts` && !key.endsWith('conversations'));
    expect(await open_(NOW + 4)).toEqual([]);
    expect(await open_(NOW + 5)).toEqual([`${claim.instanceId} contacts`]);
  });
});
