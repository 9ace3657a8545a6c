import type { Action } from '../../store/action-log.ts';
import type { DayJson } from '../../sync/status-types.ts';
import { formatCount, formatDay, formatNumber, formatShort } from './format.ts';

/** In pixels: the bars, above the dates. */
const HEIGHT = 120;
/** In percent of the width: the numbers of the axis stand before the days. */
const AXIS = 10;
/** The share of its day that a bar takes. */
const BAR = 0.72;
/** A date stands under each seventh day, the last one under today. */
const DATE_EVERY = 7;

const CHANGES = [
  ['created', 'new'],
  ['changed', 'changed'],
  ['deleted', 'deleted'],
] as const;

/** How many records were new, changed or deleted, without zeros. */
export function changesText(of: Record<(typeof CHANGES)[number][0], number>): string {
  const counts = CHANGES.filter(([kind]) => of[kind] > 0);
  return counts.map(([kind, word]) => `${formatNumber(of[kind])} ${word}`).join(', ') || 'no changes';
}

/** Actions that end the pause of a company. */
const ENDS = /^(?:install|disconnect)/;

/** The next 1, 2 or 5 with zeros: the end of the axis. */
function axisEnd(most: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 2, 5, 10].map((times) => times * unit).find((end) => end >= most) ?? most;
}

/**
 * The days on which a list, or its company, was paused.
 *
 * @param actions of its company, the newest first
 * @param isPaused whether it is so now: an install may end a pause, too
 */
export function pausedDays(
  actions: readonly Pick<Action, 'resource' | 'action' | 'at'>[],
  resource: string,
  isPaused: { company: boolean; list: boolean },
  now: number,
): Set<string> {
  const days = new Set<string>();
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  for (const [of, isNow] of [[null, isPaused.company] as const, [resource, isPaused.list] as const]) {
    let end = isNow ? now : undefined;
    for (const { action, at } of actions.filter((one) => one.resource === of)) {
      if (action === 'resume' || (of === null && ENDS.test(action))) end = at;
      if (action !== 'pause') continue;
      for (let ms = at; ms <= (end ?? at); ms += 24 * 60 * 60_000) days.add(day(ms));
      days.add(day(end ?? at));
      end = undefined;
    }
    if (isNow) days.add(day(now));
  }
  return days;
}

/**
 * What changed in a list on each of the last days, as a chart: bars in percent of its width and pixels of its height. The
 * first copy is told beside it, as it would hide the rest.
 *
 * @param days the oldest first; undefined for a list that was never read
 * @returns undefined if nothing was ever read
 */
export function chartView(days: readonly DayJson[], paused: ReadonlySet<string>) {
  const isEmpty = (sums: object) => Object.values(sums).every((sum) => sum === 0);
  if (paused.size === 0 && days.every(({ day: _, ...sums }) => isEmpty(sums))) return undefined;
  const sumOf = (day: DayJson) => day.created + day.changed + day.deleted;
  const end = axisEnd(Math.max(...days.map(sumOf)));
  const width = (100 - AXIS) / days.length;
  const percent = (value: number) => `${value.toFixed(2)}%`;
  const copied = days.filter(({ first_copy }) => first_copy > 0);
  return {
    isFlat: !days.some((day) => sumOf(day) > 0 || day.failed > 0 || paused.has(day.day)),
    height: HEIGHT,
    axis: percent(AXIS),
    ticks: [0, end / 2, end]
      .filter(Number.isInteger)
      .map((value) => ({ y: HEIGHT - (HEIGHT * value) / end, text: formatShort(value) })),
    days: days.map((day, at) => {
      const left = AXIS + at * width;
      let y: number = HEIGHT;
      const parts = CHANGES.filter(([kind]) => day[kind] > 0).map(([kind]) => {
        const height = Math.max(1, (HEIGHT * day[kind]) / end);
        y -= height;
        return { kind, y: y.toFixed(1), height: height.toFixed(1) };
      });
      const isPaused = paused.has(day.day);
      const said = [
        changesText(day),
        ...(day.first_copy > 0 ? [`first copy of ${formatCount(day.first_copy, 'record')}`] : []),
        ...(day.runs > 0 ? [formatCount(day.runs, 'sync')] : []),
        ...(day.failed > 0 ? ['a sync failed'] : []),
        ...(isPaused ? ['paused'] : []),
      ];
      return {
        text: `${formatDay(day.day)}: ${said.join(' · ')}`,
        slot: { x: percent(left), width: percent(width) },
        bar: { x: percent(left + (width * (1 - BAR)) / 2), width: percent(width * BAR) },
        middle: percent(left + width / 2),
        parts,
        isPaused,
        hasFailed: day.failed > 0,
        isToday: at === days.length - 1,
        date: (days.length - 1 - at) % DATE_EVERY === 0 ? formatDay(day.day) : '',
      };
    }),
    firstCopy:
      copied.length === 0
        ? ''
        : `First copy, ${formatDay(copied.at(-1)?.day ?? '')}: ${formatCount(
            copied.reduce((sum, { first_copy }) => sum + first_copy, 0),
            'record',
          )}.`,
  };
}
