import type { Logger } from '../src/runtime/logging.ts';
import type { Queues } from './queues.ts';

/** Jobs that come round by themselves, by name. */
export const UPKEEP = { startRuns: 'start-runs', rotateTokens: 'rotate-tokens' } as const;

/** How often each of them comes round at the latest, and at the most, in milliseconds. */
const UPKEEP_EVERY_MS = 30_000;
const SHORTEST_UPKEEP_MS = 1_000;

/** How often a worker looks whether the schedules are still in Redis, in milliseconds. */
const WATCH_EVERY_MS = 15_000;

/**
 * Keeps the schedules in Redis, from every worker: whatever happens to Redis, they are back within
 * {@link WATCH_EVERY_MS}, and what was lost with them comes round at once, as it does when a worker starts.
 *
 * @param intervalMs from the end of a run to the start of the next: runs are looked for often enough for that
 * @returns a function that ends the watch
 */
export function keepSchedules(queues: Queues, logger: Logger, intervalMs: number): () => void {
  const everyMs = {
    [UPKEEP.startRuns]: Math.round(Math.max(SHORTEST_UPKEEP_MS, Math.min(UPKEEP_EVERY_MS, intervalMs / 2))),
    [UPKEEP.rotateTokens]: UPKEEP_EVERY_MS,
  };
  let isOverdue = true;
  const keep = async () => {
    try {
      for (const name of Object.values(UPKEEP)) {
        if ((await queues.upkeep.getJobScheduler(name))?.every === everyMs[name]) continue;
        await queues.upkeep.upsertJobScheduler(name, { every: everyMs[name] }, { name });
        isOverdue = true;
      }
      if (isOverdue) await queues.upkeep.addBulk(Object.values(UPKEEP).map((name) => ({ name, data: {} })));
      isOverdue = false;
    } catch (error) {
      logger.warn({ err: error }, 'the schedules could not be looked after');
    }
  };
  void keep();
  const timer = setInterval(keep, WATCH_EVERY_MS);
  return () => clearInterval(timer);
}
