import type { Logger } from '../runtime/logging.ts';

/** How often it is looked, in milliseconds. */
const LOOK_EVERY_MS = 5_000;

const NAMES = { store: 'the database', redis: 'Redis' } as const;

/** What all companies' copies depend on, named as the kind of its errors. */
type Dependency = keyof typeof NAMES;

/** What keeps the whole app from copying, as this process saw it last. */
export interface AppWatch {
  readonly trouble: Dependency | undefined;
  close(): void;
}

/**
 * Looks every few seconds at what all companies' copies depend on, and tells the log when it is in trouble, and when
 * that is over: once, not with every job that fails.
 *
 * @param checks throw what is wrong, and what to do
 */
export function watchApp(checks: Record<Dependency, () => Promise<void>>, logger: Logger): AppWatch {
  /** What is in trouble, and why. */
  const unwell = new Map<Dependency, string>();
  const closers = (['store', 'redis'] as const).map((what) => {
    let isLooking = false;
    const look = async () => {
      // One that takes longer than the pause is not overtaken.
      if (isLooking) return;
      isLooking = true;
      try {
        await checks[what]();
        if (unwell.delete(what)) logger.info(`${NAMES[what]} can be worked with again`);
      } catch (err) {
        const reason = err instanceof Error ? err.message : String(err);
        if (unwell.get(what) !== reason)
          logger.error({ err }, `${NAMES[what]} cannot be worked with, trying on`);
        unwell.set(what, reason);
      } finally {
        isLooking = false;
      }
    };
    const timer = setInterval(look, LOOK_EVERY_MS).unref();
    return () => clearInterval(timer);
  });
  return {
    get trouble() {
      const [what] = unwell.keys();
      return what;
    },
    close: () => {
      for (const close of closers) close();
    },
  };
}
