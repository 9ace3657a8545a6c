import type { Logger } from '../runtime/logging.ts';
import { LostDatabaseError } from '../store/database.ts';

const CHECK_EVERY_MS = 5_000;

/** The watch counts the workers this often, in milliseconds. */
const COUNT_EVERY_MS = 3_000;

/** Workers are missing after so many counts in a row without one: a restarted worker is back sooner. */
const COUNTS_WITHOUT = 2;

const NAMES = { store: 'the database', redis: 'Redis' } as const;

/** A dependency of every sync, named as the kind of its errors. */
type Dependency = keyof typeof NAMES;

/** The state of the app as a whole, as this process saw it last. */
export type AppWatch = ReturnType<typeof watchApp>;

/**
 * Watches what every sync depends on. It logs the start and the end of an outage once, not with each job.
 *
 * @param checks throw an error that says what is wrong and what to do
 * @param listWorkers the worker processes; undefined when nobody can tell
 * @param onLost the database is lost to this process
 */
export function watchApp(
  checks: Record<Dependency, () => Promise<void>>,
  listWorkers: () => Promise<readonly unknown[] | undefined>,
  logger: Logger,
  onLost: (error: LostDatabaseError) => void,
) {
  let isClosed = false;
  /** The reasons of the failing checks. */
  const reasons = new Map<Dependency, string>();
  let workers: number | undefined;
  let countsWithout = 0;
  // The next check starts after this one, so that checks that hang do not pile up.
  const repeat = (everyMs: number, work: () => Promise<void>) => {
    const next = async () => {
      if (isClosed) return;
      await work();
      repeat(everyMs, work);
    };
    setTimeout(next, everyMs).unref();
  };
  for (const name of ['store', 'redis'] as const) {
    repeat(CHECK_EVERY_MS, async () => {
      try {
        await checks[name]();
        if (reasons.delete(name)) logger.info(`${NAMES[name]} works again`);
      } catch (err) {
        if (err instanceof LostDatabaseError) return onLost(err);
        const reason = err instanceof Error ? err.message : String(err);
        if (reasons.get(name) !== reason) logger.error({ err }, `${NAMES[name]} fails; the app keeps trying`);
        reasons.set(name, reason);
      }
    });
  }
  repeat(COUNT_EVERY_MS, async () => {
    workers = (await listWorkers())?.length;
    countsWithout = workers === 0 ? countsWithout + 1 : 0;
  });
  return {
    get failing(): Dependency | undefined {
      return reasons.keys().next().value;
    },
    /** How many worker processes run; undefined when nobody can tell. */
    get workers() {
      return workers;
    },
    /** Whether no worker process has run for some seconds. */
    get areWorkersMissing() {
      return countsWithout >= COUNTS_WITHOUT;
    },
    close: () => {
      isClosed = true;
    },
  };
}
