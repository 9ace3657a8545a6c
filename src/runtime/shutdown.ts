import { constants } from 'node:os';
import type { Logger } from './logging.ts';

const LIMIT_MS = 10_000;

/** Signals that come so soon after the first are the same wish: the terminal signals the whole group, and npm passes it on. */
const SAME_WISH_MS = 500;

/** The exit code of what a signal breaks off before it has done what it was started for, as shells have it for Ctrl-C. */
export const INTERRUPTED_CODE = 130;

/** The orderly end of a process. */
export interface Shutdown {
  /** Whether the end has begun. */
  readonly isStopping: boolean;
  /**
   * Registers what has to be closed, right after it was opened; the last one is closed first.
   *
   * @param begin is told before anything is closed
   */
  add(name: string, close: () => unknown, begin?: () => void): void;
  /**
   * Closes everything, one after the other, then exits. A closer that throws is logged and does not stop the others.
   *
   * @param exitCode 1 instead when anything goes wrong
   */
  stop(reason: string, exitCode?: number): Promise<void>;
}

/**
 * Makes SIGINT, SIGTERM, SIGHUP and errors that nobody catches end the process in order, within ten seconds. A second
 * signal ends it at once.
 *
 * @param options.signalCode the exit code after a signal; 0 by default, as ending on one is what servers do
 */
export function installShutdown({
  logger,
  signalCode = 0,
}: {
  logger: Logger;
  signalCode?: number;
}): Shutdown {
  const closers: { name: string; close: () => unknown; begin: (() => void) | undefined }[] = [];
  let code = 0;
  let hangs: string | undefined;
  let ending: Promise<void> | undefined;
  let signalledAt: number | undefined;

  const closeAll = async (reason: string): Promise<void> => {
    logger.info({ reason }, 'shutting down');
    setTimeout(() => {
      logger.fatal({ hangs }, 'the shutdown takes too long');
      process.exit(1);
    }, LIMIT_MS);
    for (const { begin } of closers) begin?.();
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) {
      hangs = closer.name;
      try {
        await closer.close();
      } catch (err) {
        logger.error({ err, closing: hangs }, 'could not be closed');
        code ||= 1;
      }
    }
    logger.info('shut down');
    process.exit(code);
  };
  const stop = (reason: string, exitCode = 0): Promise<void> => {
    code ||= exitCode;
    ending ??= closeAll(reason);
    return ending;
  };

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      signalledAt ??= performance.now();
      if (ending === undefined || performance.now() - signalledAt <= SAME_WISH_MS) {
        void stop(signal, signalCode);
        return;
      }
      logger.warn({ signal, hangs }, 'a second signal: ending at once');
      process.exit(128 + constants.signals[signal]);
    });
  }
  // Told by preload.js. Whatever ended the parent may have signalled us as well: it is the same wish, however late.
  process.on('parentGone', () => void stop('the process that started this one is gone', signalCode));
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, (err: unknown) => {
      logger.fatal({ err }, event === 'uncaughtException' ? 'uncaught exception' : 'unhandled rejection');
      void stop(event, 1);
    });
  }

  return {
    add: (name, close, begin) => closers.push({ name, close, begin }),
    stop,
    get isStopping() {
      return ending !== undefined;
    },
  };
}
