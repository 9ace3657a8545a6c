import { LONGEST_OUTAGE_PAUSE_MS } from '../service/backoff.ts';
import type { List, ListJob, NextStarts, Run } from '../store/runs.ts';
import { type ErrorKind, SERVICE_OUTAGES } from '../store/states.ts';
import type { CheckOutcome } from './check.ts';
import type { SyncParts } from './parts.ts';
import type { Resource } from './resource.ts';

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** The longest pause after a failed run, in milliseconds. */
const FAILED_PAUSE_MS = 10 * MINUTE_MS;

/** Lists that one transaction takes. */
const PORTION = 500;

/** A check reads so many pages at most; lists of so many are read again at once if records are missing. */
export const MOST_CHECK_PAGES = 20;

/** Checks are never rarer than one in so many intervals: 16 minutes by default. */
const MOST_EVERY = 16;

/** Fewer changes behind the head of a full run say nothing about checks. */
const LEAST_BEHIND = 10;

/** Checks caught nearly all if the full run found less than one in so many. */
const NEARLY_ALL = 10;

/** Where checks pay, full runs take at most one in so many requests of the limit, and one. */
const PAUSE_PER_RUN = 10;

/** Full runs and checks may begin earlier by this part of their pause: lists that were read together spread over it. */
const DRIFT = 0.1;

/** Its multiples, modulo 1, lie evenly however many there are. */
const GOLDEN_RATIO = (1 + Math.sqrt(5)) / 2;

type ListInterval = Pick<List, 'interval_minutes'>;
type ResourceInterval = Pick<Resource, 'intervalMinutes'>;

/**
 * The pause between two full runs of a list, in milliseconds: the list's own, its resource's, or the default.
 *
 * @param defaultMs in milliseconds
 */
export function listIntervalMs(
  list: ListInterval | undefined,
  resource: ResourceInterval,
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

/** When a check that ran out wants the next full run, in milliseconds since 1970: at most once an interval. */
export function fullRunAfter(
  list: ListInterval & Pick<List, 'full_at'>,
  resource: ResourceInterval,
  defaultMs: number,
  now: number,
): number {
  return Math.max(now, (list.full_at ?? 0) + listIntervalMs(list, resource, defaultMs));
}

/**
 * The next starts of a list after a full run has read it. Checks that find less than full runs become half as frequent.
 * Where they pay, full runs of a large list become rare.
 * Lists that were read at the same time drift apart.
 *
 * @param limit requests a minute
 */
export function afterFullRun(
  list: ListInterval & Pick<List, 'id' | 'full_run' | 'caught' | 'check_every'>,
  { requests, behind, is_unsure }: Pick<Run, 'requests' | 'behind' | 'is_unsure'>,
  resource: ResourceInterval,
  { intervalMs, checkIntervalMs }: Pick<SyncParts, 'intervalMs' | 'checkIntervalMs'>,
  limit: number,
  now: number,
): NextStarts {
  const isFirst = list.full_run === null;
  const found = isFirst ? 0 : (behind ?? 0);
  let every = list.check_every;
  if (found >= LEAST_BEHIND && found > list.caught) every = Math.min(MOST_EVERY, every * 2);
  else if (list.caught > 0 && found * NEARLY_ALL <= list.caught) every = 1;
  const pauseMs = listIntervalMs(list, resource, intervalMs);
  const hasOwn = list.interval_minutes !== null || resource.intervalMinutes !== undefined;
  const pays = checkIntervalMs > 0 && every === 1 && !isFirst && found <= list.caught;
  const isRare = pays && is_unsure === 0 && !hasOwn;
  const rareMs = Math.min(DAY_MS, ((PAUSE_PER_RUN * requests) / limit) * MINUTE_MS);
  return {
    full_due_at: inOwnPlace(list.id, Math.round(isRare ? Math.max(pauseMs, rareMs) : pauseMs), now),
    check_due_at: checkIntervalMs > 0 ? inOwnPlace(list.id, checkIntervalMs * every, now) : null,
    check_every: every,
  };
}

/** The end of a list's pause, or as much earlier as brings the list nearer to its own place in every such interval. */
function inOwnPlace(list: number, pauseMs: number, now: number): number {
  const place = ((list * GOLDEN_RATIO) % 1) * pauseMs;
  const latest = now + pauseMs;
  return latest - Math.round(Math.min((latest - place) % pauseMs, pauseMs * DRIFT));
}

/**
 * What a check leaves in its list. Checks that run out twice in a row become half as frequent.
 *
 * @param check.requestsSoFar of the full run inside which it happened, and its own
 */
export function nextCheck(
  list: Pick<List, 'id' | 'check_every' | 'ran_out'>,
  { outcome, requestsSoFar }: { outcome: CheckOutcome; requestsSoFar: number },
  checkIntervalMs: number,
  now: number,
) {
  const inRow = outcome === 'ran_out' ? list.ran_out + 1 : outcome === 'failed' ? list.ran_out : 0;
  const isHalved = inRow >= 2;
  const every = isHalved ? Math.min(MOST_EVERY, list.check_every * 2) : list.check_every;
  return {
    ...((outcome === 'unchanged' || outcome === 'changed') && { checked_at: now }),
    check_due_at: checkIntervalMs > 0 ? inOwnPlace(list.id, checkIntervalMs * every, now) : null,
    check_every: every,
    check_after: requestsSoFar,
    ran_out: isHalved ? 0 : inRow,
  };
}

/** Whether a check is due inside a full run: after its interval, and at most every other request. */
export function isCheckDue(
  list: Pick<List, 'check_due_at' | 'check_every' | 'check_after'>,
  { pages, requests, started_at }: Pick<Run, 'pages' | 'requests' | 'started_at'>,
  checkIntervalMs: number,
  now: number,
): boolean {
  if (checkIntervalMs === 0 || pages === 0 || requests < list.check_after) return false;
  return now >= Math.max(list.check_due_at ?? 0, started_at + checkIntervalMs * list.check_every);
}

/** Prepares the lists of all instances for this process's `resources.ts` and configuration. */
export async function prepareLists(
  parts: Pick<SyncParts, 'dueLists' | 'resources' | 'intervalMs' | 'checkIntervalMs' | 'now'>,
): Promise<void> {
  const { dueLists, resources, intervalMs, checkIntervalMs, now = Date.now } = parts;
  const lists = resources.map((resource) => {
    return { name: resource.name, intervalMs: listIntervalMs(undefined, resource, intervalMs) };
  });
  await dueLists.prepare(lists, now(), { hasChecks: checkIntervalMs > 0 });
}

/**
 * Starts every full run that is due: new lists at once, finished ones after their interval, failed ones sooner.
 *
 * @returns all lists that need a job, in portions: the first jobs need not wait for the last run
 */
export async function* takeDue({
  dueLists,
  resources,
  now = Date.now,
}: Pick<SyncParts, 'dueLists' | 'resources' | 'now'>): AsyncGenerator<ListJob[]> {
  const names = resources.map(({ name }) => name);
  // What falls due meanwhile is for the next look: on a busy machine this one would not end.
  const at = now();
  for (let count = PORTION; count === PORTION; ) {
    const jobs = await dueLists.takeDue(names, at, PORTION);
    count = jobs.length;
    if (count > 0) yield jobs;
  }
}
