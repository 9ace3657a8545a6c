import { describe, expect, it } from 'vitest';
import type { DayJson } from '../../../src/sync/status-types.ts';
import { chartView, pausedDays } from '../../../src/web/view/chart-view.ts';
import { NOW } from '../status-fixtures.ts';

const NONE = { runs: 0, failed: 0, created: 0, changed: 0, deleted: 0, first_copy: 0 };
const DAY_MS = 24 * 60 * 60_000;
const dayOf = (ago: number) => new Date(NOW - ago * DAY_MS).toISOString().slice(0, 10);

/** The last thirty days, with what some of them brought, by how many days ago they were. */
function daysOf(brought: Record<number, Partial<DayJson>>): DayJson[] {
  return Array.from({ length: 30 }, (_, at) => ({ day: dayOf(29 - at), ...NONE, ...brought[29 - at] }));
}

function chartOf(brought: Record<number, Partial<DayJson>>, paused: string[] = []) {
  return chartView(daysOf(brought), new Set(paused)) ?? expect.unreachable('nothing is drawn');
}

describe('the chart', () => {
  it('stacks the changes of a day on an axis that ends at a round number', () => {
    const { ticks, days } = chartOf({
      0: { created: 60, changed: 30, deleted: 30, runs: 24 },
      3: { created: 1 },
    });
    expect(ticks).toEqual([
      { y: 120, text: '0' },
      { y: 60, text: '100' },
      { y: 0, text: '200' },
    ]);
    expect(days.at(-1)).toMatchObject({
      text: '10 Jun: 60 new, 30 changed, 30 deleted · 24 syncs',
      parts: [
        { kind: 'created', y: '84.0', height: '36.0' },
        { kind: 'changed', y: '66.0', height: '18.0' },
        { kind: 'deleted', y: '48.0', height: '18.0' },
      ],
    });
    // A single change among many is still seen.
    expect(days.at(-4)?.parts).toEqual([{ kind: 'created', y: '119.0', height: '1.0' }]);
    expect(days.map(({ date }) => date).filter((date) => date !== '')).toEqual([
      '13 May',
      '20 May',
      '27 May',
      '3 Jun',
      '10 Jun',
    ]);
  });

  it('tells the first copy beside it, which would hide the rest', () => {
    const chart = chartOf({ 9: { first_copy: 30_000 }, 8: { first_copy: 5_534 }, 0: { changed: 4 } });
    expect(chart.firstCopy).toBe('First copy, 2 Jun: 35,534 records.');
    expect(chart.ticks.at(-1)?.text).toBe('5');
    expect(chart.days.at(-9)?.text).toBe('2 Jun: no changes · first copy of 5,534 records');
  });

  it('shows failures and pauses', () => {
    const { days, isFlat } = chartOf({ 1: { failed: 2, runs: 3 } }, [dayOf(2)]);
    expect(isFlat).toBe(false);
    expect(days.at(-2)).toMatchObject({
      hasFailed: true,
      text: '9 Jun: no changes · 3 syncs · a sync failed',
    });
    expect(days.at(-3)).toMatchObject({ isPaused: true, text: '8 Jun: no changes · paused' });
  });

  it('draws nothing where nothing changed, and is none where nothing ran', () => {
    expect(chartOf({ 0: { runs: 24 } }).isFlat).toBe(true);
    expect(chartView(daysOf({}), new Set())).toBeUndefined();
    expect(chartView([], new Set())).toBeUndefined();
    expect(chartView(daysOf({}), new Set([dayOf(2)]))?.isFlat).toBe(false);
  });
});

describe('the days of a pause', () => {
  const done = (action: string, ago: number, resource: string | null = null) => {
    return { action, resource, at: NOW - ago * DAY_MS };
  };
  const [running, paused] = [
    { company: false, list: false },
    { company: true, list: false },
  ];
  it.each([
    ['from its begin to its end', [done('resume', 5), done('sync', 6), done('pause', 7)], running, [7, 6, 5]],
    ['of the list alone', [done('resume', 1, 'contacts'), done('pause', 2, 'contacts')], running, [2, 1]],
    ['not of another list', [done('resume', 1, 'tags'), done('pause', 2, 'tags')], running, []],
    ['until today while it lasts', [done('pause', 2)], paused, [2, 1, 0]],
    ['that an install has ended', [done('install', 4), done('pause', 5)], running, [5, 4]],
    ['whose end nobody noted', [done('pause', 2)], running, [2]],
    ['of which nothing is known any more', [], paused, [0]],
  ])('%s', (_what, actions, isPaused, ago) => {
    expect([...pausedDays(actions, 'contacts', isPaused, NOW)].sort()).toEqual(ago.map(dayOf));
  });
});
