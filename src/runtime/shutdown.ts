import { constants } from 'node:os';
import type { Logger } from './logging.ts';

const DEFAULT_LIMIT_MS = 10_000;
/**
 * Signals that come so soon after the first are the same wish: on Ctrl-C the terminal signals the whole group,
 * and npm passes the signal on once more.
 */
const SAME_WISH_MS = 500;
/**
 * Ctrl-C, a supervisor, a terminal that was closed. `nohup` does not keep the last one away: Node undoes at its start
 * what it inherits there, and a process cannot know of it.
 */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The exit code of what a signal breaks off before it has done what it was started for, as shells have it for Ctrl-C. */
export const INTERRUPTED_CODE = 130;

/** What a shutdown is made of; all but the logger has a default for real processes. */
export interface ShutdownOptions {
  logger: Logger;
  /** For all closers together, in milliseconds. */
  limitMs?: number;
  /** The exit code after a signal: 0, as ending on one is what servers do. */
  signalCode?: number;
  /** Where signals and fatal errors come from. */
  source?: NodeJS.EventEmitter;
  exit?: (code: number) => void;
  /** Milliseconds on a clock that only goes forward. */
  now?: () => number;
}

/** The orderly end of a process. */
export interface Shutdown {
  /** Whether the end has begun. */
  readonly isStopping: boolean;
  /** Whether an error that nobody has caught was met. */
  readonly hasCrashed: boolean;
  /**
   * Registers what has to be closed, right after it was opened; the last one is closed first.
   *
   * @param begin is told before anything is closed
   */
  add(name: string, close: () => unknown, begin?: () => void): void;
  /**
   * Closes everything, one after the other, then exits; the same end for every later call. A closer that throws is
   * logged and does not stop the others.
   *
   * @param exitCode 1 instead when anything goes wrong
   */
  stop(reason: string, exitCode?: number): Promise<void>;
}

/**
 * Makes SIGINT, SIGTERM, SIGHUP, uncaught exceptions and unhandled rejections end the process in order, within the
 * limit. A second signal, or the limit, ends it at once; the log then says what was still open.
 */
export function installShutdown(options: ShutdownOptions): Shutdown {
  const { logger, limitMs = DEFAULT_LIMIT_MS, signalCode = 0 } = options;
  const source = options.source ?? process;
  const exit = options.exit ?? ((code) => process.exit(code));
  const now = options.now ?? (() => performance.now());
  const closers: { name: string; close: () => unknown; begin: (() => void) | undefined }[] = [];
  let code = 0;
  let closing: string | undefined;
  let ending: Promise<void> | undefined;
  let firstSignalAt: number | undefined;
  let hasCrashed = false;

  const closeAll = async (reason: string): Promise<void> => {
    logger.info({ reason }, 'shutting down');
    const timer = setTimeout(() => {
      const open = [closing, ...closers.map(({ name }) => name).reverse()].filter(
        (name) => name !== undefined,
      );
      logger.fatal({ hangs: closing, open, limitMs }, 'the shutdown takes too long');
      exit(1);
    }, limitMs);
    for (const { begin } of closers) begin?.();
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) {
      closing = closer.name;
      try {
        await closer.close();
      } catch (error) {
        logger.error({ err: error, closing }, 'could not be closed');
        code ||= 1;
      }
    }
    clearTimeout(timer);
    logger.info('shut down');
    exit(code);
  };

  const stop = (reason: string, exitCode = 0): Promise<void> => {
    code ||= exitCode;
    ending ??= closeAll(reason);
    return ending;
  };

  for (const signal of SIGNALS) {
    source.on(signal, () => {
      firstSignalAt ??= now();
      if (ending !== undefined && now() - firstSignalAt > SAME_WISH_MS) {
        logger.warn({ signal, hangs: closing }, 'a second signal: ending at once');
        exit(128 + constants.signals[signal]);
      } else {
        void stop(signal, signalCode);
      }
    });
  }
  // Told by preload.js. Whatever ended the parent may have signalled us as well: it is the same wish, however late.
  source.on('parentGone', () => void stop('the process that started this one is gone', signalCode));
  const onFatal = (what: string) => (error: unknown) => {
    hasCrashed = true;
    logger.fatal({ err: error }, what);
    void stop(what, 1);
  };
  source.on('uncaughtException', onFatal('uncaught exception'));
  source.on('unhandledRejection', onFatal('unhandled rejection'));

  return {
    add: (name, close, begin) => closers.push({ name, close, begin }),
    stop,
    get isStopping() {
      return ending !== undefined;
    },
    get hasCrashed() {
      return hasCrashed;
    },
  };
}
