import { LONGEST_OUTAGE_PAUSE_MS } from '../service/backoff.ts';
import type { List, OpenRun, Run, RunStore } from '../store/runs.ts';
import { type ErrorKind, SERVICE_OUTAGES } from '../store/states.ts';
import type { Resource } from './resource.ts';

export const MINUTE_MS = 60_000;

/** The longest pause after a failed run, in milliseconds. */
const FAILED_PAUSE_MS = 10 * MINUTE_MS;

interface ScheduleParts {
  runs: RunStore;
  resources: readonly Resource[];
  /** The default pause between two runs of a list, in milliseconds. */
  intervalMs: number;
  now?: () => number;
}

/**
 * The pause between two runs of a list, in milliseconds: the list's own, its resource's, or the default.
 *
 * @param defaultMs in milliseconds
 */
export function listIntervalMs(
  list: Pick<List, 'interval_minutes'> | undefined,
  resource: Pick<Resource, 'intervalMinutes'>,
  defaultMs: number,
): number {
  const minutes = list?.interval_minutes ?? resource.intervalMinutes;
  return minutes === undefined ? defaultMs : minutes * MINUTE_MS;
}

/** The pause after a failed run, in milliseconds. */
export function failedPauseMs(intervalMs: number, kind: ErrorKind | null): number {
  const isOutage = SERVICE_OUTAGES.some((outage) => outage === kind);
  return Math.min(intervalMs, isOutage ? LONGEST_OUTAGE_PAUSE_MS : FAILED_PAUSE_MS);
}

/** When the run after a closed one starts by itself, in milliseconds since 1970. */
export function nextStartAt(
  { state, finished_at, error_kind }: Pick<Run, 'state' | 'finished_at' | 'error_kind'>,
  intervalMs: number,
): number {
  return (finished_at ?? 0) + (state === 'failed' ? failedPauseMs(intervalMs, error_kind) : intervalMs);
}

/**
 * Starts every run that is due: new lists at once, finished ones after their interval, failed ones sooner.
 *
 * @returns all open runs whose wait is over. Each of them needs a job, as Redis may have lost the old one.
 */
export async function startDueRuns({
  runs,
  resources,
  intervalMs,
  now = Date.now,
}: ScheduleParts): Promise<OpenRun[]> {
  const at = now();
  for (const resource of resources) {
    const due = await runs.due(resource.name, at, {
      intervalMs: listIntervalMs(undefined, resource, intervalMs),
      outageMs: LONGEST_OUTAGE_PAUSE_MS,
      failedMs: FAILED_PAUSE_MS,
    });
    for (const instanceId of due) await runs.start(instanceId, [resource.name], at);
  }
  const open = await runs.open(at);
  // A run of an unknown resource belongs to another version of the app.
  return open.filter(({ resource }) => resources.some(({ name }) => name === resource));
}
