import { constants } from 'node:os';
import type { Logger } from './logging.ts';

const LIMIT_MS = 10_000;

/** One Ctrl-C may signal twice: it reaches the whole process group, and npm passes it on. */
const SAME_SIGNAL_MS = 500;

/** The exit code of a command that a signal interrupted, as in a shell after Ctrl-C. */
export const INTERRUPTED_CODE = 130;

export interface Shutdown {
  readonly isStopping: boolean;
  /**
   * Registers a resource right after its opening. The last one closes first.
   *
   * @param begin runs before anything closes
   */
  add(name: string, close: () => unknown, begin?: () => void): void;
  /**
   * Closes everything in turn, then exits. It logs a closer that throws, and goes on.
   *
   * @param exitCode becomes 1 if a closer throws
   */
  stop(reason: string, exitCode?: number): Promise<void>;
}

/**
 * Ends the process in order, within ten seconds, after SIGINT, SIGTERM, SIGHUP or an uncaught error.
 * A second signal ends it at once.
 *
 * @param options.signalCode the exit code after a signal; 0 by default, as for servers
 */
export function installShutdown(options: { logger: Logger; signalCode?: number }): Shutdown {
  const { logger, signalCode = 0 } = options;
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
    // A start that is still under way may add closers meanwhile.
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
      if (ending === undefined || performance.now() - signalledAt <= SAME_SIGNAL_MS) {
        void stop(signal, signalCode);
        return;
      }
      logger.warn({ signal, hangs }, 'a second signal: ending at once');
      process.exit(128 + constants.signals[signal]);
    });
  }
  // From preload.js, and no second signal: the parent's end may have signalled us, too.
  process.on('parentGone', () => void stop('the parent process is gone', signalCode));
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
