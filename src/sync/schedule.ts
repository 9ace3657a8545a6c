import type { OpenRun, RunStore } from '../store/runs.ts';
import type { Resource } from './resource.ts';

/** A failed run is tried again, or followed by another one, after this at the latest, in milliseconds. */
const FAILED_AGAIN_MS = 10 * 60_000;

/** What decides when runs start. */
interface ScheduleParts {
  runs: RunStore;
  resources: readonly Resource[];
  /** From the end of one run to the start of the next, in milliseconds. */
  intervalMs: number;
  now?: () => number;
}

/** The pause behind a failed run, in milliseconds. */
export function failedAgainMs(intervalMs: number): number {
  return Math.min(intervalMs, FAILED_AGAIN_MS);
}

/** When the run behind a closed one starts by itself, in milliseconds since 1970. */
export function nextStartAt(ended: { failed: boolean; finishedAt: number }, intervalMs: number): number {
  return ended.finishedAt + (ended.failed ? failedAgainMs(intervalMs) : intervalMs);
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
  for (const { name } of resources) {
    const due = await runs.due(name, at - intervalMs, at - failedAgainMs(intervalMs));
    for (const instanceId of due) await runs.start(instanceId, [name], at);
  }
  const open = await runs.open(at);
  // A run of a resource that this version of the app does not know is another version's.
  return open.filter(({ resource }) => resources.some(({ name }) => name === resource));
}
