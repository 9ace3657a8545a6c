import { LONGEST_RETRY_AFTER_MS } from '../src/client/retry-timing.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { Queues } from './queues.ts';

/** Jobs that come round by themselves, by name. */
export const UPKEEP = { startRuns: 'start-runs', rotateTokens: 'rotate-tokens' } as const;

/** How often each of them comes round at the latest, and at the most, in milliseconds. */
const UPKEEP_EVERY_MS = 30_000;
const SHORTEST_UPKEEP_MS = 1_000;

/** How often a worker looks whether the schedules are still in Redis, in milliseconds. */
const WATCH_EVERY_MS = 15_000;

/** Clocks of workers may differ by so much, in milliseconds. */
const CLOCKS_DIFFER_MS = 5_000;

/**
 * No sync job waits for longer, in milliseconds: the longest wait is one that the service asks for, which each may make
 * a little longer by itself.
 */
const LONGEST_WAIT_MS = 2 * LONGEST_RETRY_AFTER_MS;

/** The watch over the schedules by one worker. */
interface KeptSchedules {
  /**
   * For how long they could not be looked after, in milliseconds, since the watch began at the most; 0 while they can be.
   * One that never got into Redis is late, too, and cannot be seen there.
   */
  lateMs(): number;
  end(): void;
}

/**
 * Keeps the schedules in Redis, from every worker: whatever happens to Redis, they are back within
 * {@link WATCH_EVERY_MS}, and what was lost with them comes round at once, as it does when a worker starts.
 *
 * All that waits in Redis waits for a moment of the clock by which it was noted. When that clock is set back, it would
 * wait for as much longer: so schedules, and jobs, that stand further ahead than they can are brought forward.
 *
 * @param intervalMs from the end of a run to the start of the next: runs are looked for often enough for that
 */
export function keepSchedules(queues: Queues, logger: Logger, intervalMs: number): KeptSchedules {
  const everyMs = {
    [UPKEEP.startRuns]: Math.round(Math.max(SHORTEST_UPKEEP_MS, Math.min(UPKEEP_EVERY_MS, intervalMs / 2))),
    [UPKEEP.rotateTokens]: UPKEEP_EVERY_MS,
  };
  const names = Object.values(UPKEEP);
  let isOverdue = true;
  let wasSetBack = false;
  let isLooking = false;
  let lookedAt = performance.now();
  const keep = async () => {
    // There may be many jobs to bring forward: the next look would do it again, and tell it.
    if (isLooking) return;
    isLooking = true;
    try {
      const now = Date.now();
      const found = await Promise.all(names.map((name) => queues.upkeep.getJobScheduler(name)));
      // When each of them came round last, or was put in: there the clock has been.
      const last = found.map((scheduler) => (scheduler?.next ?? 0) - (scheduler?.every ?? 0));
      const ahead = names.filter((_, at) => (last[at] ?? 0) > now + CLOCKS_DIFFER_MS);
      // Before the schedules: whoever fails in between, or takes over, sees by them that there are jobs to look for.
      const jobs = await queues.bringForward(ahead.length > 0 ? Math.max(...last) : now + LONGEST_WAIT_MS);
      const isSetBack = jobs > 0 || ahead.length > 0;
      if (isSetBack && !wasSetBack) {
        logger.warn(
          { schedules: ahead, jobs },
          'the clock was set back: what waited for a moment far ahead goes on',
        );
      }
      wasSetBack = isSetBack;
      for (const [at, name] of names.entries()) {
        // Put in anew, a schedule that is there would keep its next moment.
        if (ahead.includes(name)) await queues.upkeep.removeJobScheduler(name);
        else if (found[at]?.every === everyMs[name]) continue;
        await queues.upkeep.upsertJobScheduler(name, { every: everyMs[name] }, { name });
        isOverdue = true;
      }
      if (isOverdue) await queues.upkeep.addBulk(names.map((name) => ({ name, data: {} })));
      isOverdue = false;
      lookedAt = performance.now();
    } catch (error) {
      logger.warn({ err: error }, 'the schedules could not be looked after');
    } finally {
      isLooking = false;
    }
  };
  void keep();
  const timer = setInterval(keep, WATCH_EVERY_MS);
  return {
    lateMs: () => {
      const ms = performance.now() - lookedAt;
      return ms > 2 * WATCH_EVERY_MS ? ms : 0;
    },
    end: () => clearInterval(timer),
  };
}
