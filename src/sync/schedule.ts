import { LONGEST_OUTAGE_PAUSE_MS } from '../service/backoff.ts';
import type { List, OpenRun, Run, RunStore } from '../store/runs.ts';
import { type ErrorKind, SERVICE_OUTAGES } from '../store/states.ts';
import type { Resource } from './resource.ts';

/** A failed run is tried again, or followed by another one, after this at the latest, in milliseconds. */
const FAILED_AGAIN_MS = 10 * 60_000;

/** What decides when runs start. */
interface ScheduleParts {
  runs: RunStore;
  resources: readonly Resource[];
  /** From the end of one run to the start of the next, in milliseconds, of lists that have no interval of their own. */
  intervalMs: number;
  now?: () => number;
}

const MINUTE_MS = 60_000;

/** From the end of a list's run to the start of the next, in milliseconds: its own, its resource's, or the configured one. */
export function listIntervalMs(
  list: Pick<List, 'interval_minutes'> | undefined,
  resource: Pick<Resource, 'intervalMinutes'>,
  configuredMs: number,
): number {
  const minutes = list?.interval_minutes ?? resource.intervalMinutes;
  return minutes === undefined ? configuredMs : minutes * MINUTE_MS;
}

/** The pause behind a run that failed for such a reason, in milliseconds. */
export function failedAgainMs(intervalMs: number, kind: ErrorKind | null): number {
  const isOutage = SERVICE_OUTAGES.some((outage) => outage === kind);
  return Math.min(intervalMs, isOutage ? LONGEST_OUTAGE_PAUSE_MS : FAILED_AGAIN_MS);
}

/** When the run behind a closed one starts by itself, in milliseconds since 1970. */
export function nextStartAt(
  { state, finished_at, error_kind }: Pick<Run, 'state' | 'finished_at' | 'error_kind'>,
  intervalMs: number,
): number {
  return (finished_at ?? 0) + (state === 'failed' ? failedAgainMs(intervalMs, error_kind) : intervalMs);
}

/**
 * Starts every run that is due: lists that were never synced, finished ones after the interval, failed ones sooner.
 *
 * @returns every open run whose wait is over, and so must have a job: what was in Redis may be gone
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
      failedMs: FAILED_AGAIN_MS,
    });
    for (const instanceId of due) await runs.start(instanceId, [resource.name], at);
  }
  const open = await runs.open(at);
  // A run of a resource that this version of the app does not know is another version's.
  return open.filter(({ resource }) => resources.some(({ name }) => name === resource));
}
