import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import { formatDuration, formatNumber, instantOf } from './format.ts';

/** A shorter time says nothing of the pace, in milliseconds. */
const SHORTEST_MS = 10_000;

/** A pace below this part of the limit includes pauses or outages, and predicts nothing. */
const INTERRUPTED = 0.25;

/** Two digits: nobody needs more. */
function roughly(value: number): number {
  return Number(value.toPrecision(2));
}

/**
 * How long the open runs still take together, or how fast they go where their size is not known. The limit sets the pace:
 * what the burst brought in the first seconds does not last.
 *
 * @param open lists with an open run, waits for the limit included
 * @param now milliseconds since 1970, local clock
 */
export function paceText(
  { limit }: InstanceStatus['budget'],
  open: readonly ListStatusJson[],
  now: number,
): string {
  const sum = (of: (list: ListStatusJson) => number) => open.reduce((total, list) => total + of(list), 0);
  const [records, pages] = [sum((list) => list.records), sum((list) => list.pages)];
  const elapsedMs = now - Math.min(...open.map(({ started_at }) => instantOf(started_at) ?? now));
  const measured = elapsedMs < SHORTEST_MS ? Number.POSITIVE_INFINITY : records / (elapsedMs / 1_000);
  const allowed = limit === null || pages === 0 ? Number.POSITIVE_INFINITY : (records / pages) * (limit / 60);
  const perSecond = Math.min(measured, allowed);
  const isInterrupted = Number.isFinite(allowed) && perSecond < allowed * INTERRUPTED;
  if (perSecond === 0 || !Number.isFinite(perSecond) || isInterrupted) return '';
  if (open.every(({ full_at, stored, records }) => full_at !== null && stored >= records)) {
    if (open.every(({ stored, records }) => stored === records)) return 'Nearly done.';
    const leftMs = (sum((list) => list.stored - list.records) / perSecond) * 1_000;
    return `About ${formatDuration(leftMs < 60_000 ? leftMs : Math.round(leftMs / 60_000) * 60_000)} left.`;
  }
  const lists = open.length === 1 ? '' : open.length === 2 ? ' for both lists' : ` for ${open.length} lists`;
  return perSecond < 1 ? '' : `About ${formatNumber(roughly(perSecond))} records a second${lists}.`;
}
