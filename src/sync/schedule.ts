import type { RunKey, RunStore, UnfinishedRun } from '../store/runs.ts';
import type { Resource } from './resources.ts';

/** A failed run is started again after this at the latest, in milliseconds. */
const FAILED_AGAIN_MS = 10 * 60_000;

/** What decides when runs start. */
export interface ScheduleParts {
  runs: RunStore;
  resources: readonly Resource[];
  /** From the end of one run to the start of the next, in milliseconds. */
  intervalMs: number;
  /** Failed runs that what they failed on does not hold up any more, or may not. */
  overcome?: () => Promise<RunKey[]>;
  now?: () => number;
}

/** When a run that ended is started again by itself, in milliseconds since 1970. */
export function nextStartAt(ended: { failed: boolean; finishedAt: number }, intervalMs: number): number {
  return ended.finishedAt + (ended.failed ? Math.min(intervalMs, FAILED_AGAIN_MS) : intervalMs);
}

/**
 * Starts every run that is due: resources that were never synced, finished runs after the interval, failed ones
 * somewhat sooner, and at once when what they failed on is over. An end that lies ahead, as the clock was set back since,
 * counts as now.
 *
 * @returns every run that is unfinished now, and so must have a job: what was in Redis may be gone. Those of resources
 *   that are not known here are left to the version of the app that knows them
 */
export async function startDueRuns(parts: ScheduleParts): Promise<UnfinishedRun[]> {
  const now = (parts.now ?? Date.now)();
  await parts.runs.endNoLater(now);
  const endedBefore = (failed: boolean) => now - nextStartAt({ failed, finishedAt: 0 }, parts.intervalMs);
  for (const { name } of parts.resources) {
    for (const key of await parts.runs.due(name, endedBefore(false), endedBefore(true))) {
      await parts.runs.start(key, now, { whileActive: true });
    }
  }
  for (const key of (await parts.overcome?.()) ?? []) {
    if (parts.resources.some(({ name }) => name === key.resource))
      await parts.runs.start(key, now, { whileActive: true });
  }
  const unfinished = await parts.runs.unfinished();
  // A run of a resource that this version of the app does not know is another version's.
  return unfinished.filter(({ resource }) => parts.resources.some(({ name }) => name === resource));
}
