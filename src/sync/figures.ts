import type { ServiceClock } from '../client/service-clock.ts';
import type { Database } from '../store/database.ts';
import { readFigures } from '../store/figures.ts';
import { refreshExpiry } from '../tokens/expiry.ts';

/** A rotation that was to be tried so long ago, and no refresh has gone well with since, is in trouble, in milliseconds. */
const OVERDUE_AFTER_MS = 2 * 60 * 60_000;

/**
 * Reads what only the store and the queue know, for the metrics.
 *
 * @param parts.countJobs sync jobs by state
 * @param parts.countWorkers worker processes that live, undefined when that cannot be told
 * @returns numbers over all instances; ages and what is left in milliseconds
 */
export async function collectFigures(parts: {
  db: Database;
  clock: ServiceClock;
  countJobs: () => Promise<Record<string, number>>;
  countWorkers: () => number | undefined;
}) {
  const now = parts.clock.now();
  const [store, jobs] = await Promise.all([readFigures(parts.db, now, OVERDUE_AFTER_MS), parts.countJobs()]);
  const { instances, runs, oldestStart, oldestRefreshToken } = store;
  return {
    instances,
    runs,
    jobs,
    workers: parts.countWorkers(),
    oldestRunAgeMs: oldestStart === null ? 0 : Math.max(0, Date.now() - oldestStart),
    refreshTokenEndsInMs: oldestRefreshToken === null ? undefined : refreshExpiry(oldestRefreshToken) - now,
    refreshTokensDue: store.due,
    refreshTokensOverdue: store.overdue,
  };
}
