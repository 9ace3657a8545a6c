import type { Logger } from '../runtime/logging.ts';

/** How often it is looked, in milliseconds. */
const LOOK_EVERY_MS = 5_000;

/** What keeps the whole app from copying, as this process saw it last. */
interface AppWatch {
  /** For administrators, who cannot do anything about it. */
  readonly notice: string | undefined;
  close(): void;
}

const HELP =
  'Those who run the app find the reason in its log, and what to do; mostly it goes on by itself when that is over.';
const NAMES = { database: 'the database', redis: 'Redis' } as const;
const NOTICES = {
  database: `The app cannot write to its own database at the moment, so nothing new is copied. ${HELP}`,
  redis: `The app cannot work with its own queue (Redis) at the moment, so nothing new is copied. ${HELP}`,
} as const;

/**
 * Looks every few seconds at what all companies' copies depend on, and tells the log when it is in trouble, and when
 * that is over: once, not with every job that fails.
 *
 * @param checks throw what is wrong, and what to do
 */
export function watchApp(
  checks: Record<keyof typeof NOTICES, () => Promise<void>>,
  logger: Logger,
): AppWatch {
  /** What is in trouble, and why. */
  const unwell = new Map<keyof typeof NOTICES, string>();
  const closers = (['database', 'redis'] as const).map((what) => {
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
    get notice() {
      const [what] = unwell.keys();
      return what && NOTICES[what];
    },
    close: () => {
      for (const close of closers) close();
    },
  };
}
