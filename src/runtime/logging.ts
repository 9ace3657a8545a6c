import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { ProcessFacts } from './process-facts.ts';
import { REDACTED, redact } from './redaction.ts';

export type { Logger } from 'pino';

const ERROR_LEVEL = pino.levels.values.error ?? 50;

/** How much of a message and of a stack's frames is logged, in UTF-16 units. */
const LONGEST_MESSAGE = 2_000;
const LONGEST_FRAMES = 4_000;

const MOST_CAUSES = 5;

/** How much is kept for a reader that stands still, in bytes; later lines are lost. */
const LONGEST_BACKLOG = 4 * 1024 * 1024;

/** The names of fields whose values are blanked: `access_token`, `clientSecret`, `set-cookie`. */
const SECRET_NAME = /(?:authorization|cookie|password|secret|token)$/i;

/** Errors of JavaScript itself: a line of the code is to blame. */
const BUG = /^(?:Aggregate|Eval|Range|Reference|Syntax|Type|URI)?Error$/;

/** A person at a terminal knows which process this is, and reads the rest in the message. */
const LEFT_OUT_FOR_PEOPLE = 'process,processId,version,method,route,status,ms';

/** How and where to log. */
export interface LoggerOptions {
  /** For people instead of one JSON object a line; by default in development on a terminal. */
  pretty?: boolean;
  /** Instead of the standard output. */
  destination?: DestinationStream;
  /** Stand in every line, but not where people read it. */
  facts?: ProcessFacts;
  /**
   * Told of every line at `error` or `fatal` with an error in it: the error as it was thrown, which may hold secrets,
   * and the line's message. It must not log.
   */
  onError?: (error: Error, line: { message: string }) => void;
}

/**
 * Creates the logger of a process. Callers make child loggers with the id of their request or job. Fields of lines with
 * the name of a secret are blanked, texts and errors pass {@link redact}, and of an error only listed fields are logged.
 *
 * @param config.logLevel a level of pino, or `silent`
 */
export function createLogger(
  config: { logLevel: string; production: boolean },
  { pretty, destination, facts, onError }: LoggerOptions = {},
): Logger {
  const isForPeople = pretty ?? (!config.production && destination === undefined && process.stdout.isTTY);
  const output = destination ?? standardOutput();
  return pino(
    {
      level: config.logLevel,
      base: facts ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // pino's own `redact` throws at a URL or a Buffer where it has to look into fields of any name.
      formatters: { level: (label) => ({ level: label }), log: plainFields },
      // Of child loggers, instead of pino's own, which logs every field of an error.
      serializers: { err: (error: unknown) => plainValue('err', error) },
      hooks: {
        logMethod([first, ...rest]: unknown[], log, level) {
          const error = first instanceof Error ? first : (first as { err?: unknown } | undefined)?.err;
          // pino takes an error's message where a line has none.
          if (error instanceof Error && rest.length === 0) rest.push(String(error.message));
          const [fields, ...texts] = [first, ...rest].map((one, at) => {
            if (typeof one === 'string') return redact(one);
            return at > 0 && typeof one === 'object' && one !== null ? plainFields({ one }).one : one;
          });
          if (level >= ERROR_LEVEL && error instanceof Error) onError?.(error, { message: String(texts[0]) });
          log.apply(this, [fields, ...texts] as Parameters<typeof log>);
        },
      },
    },
    isForPeople ? (prettyStream(output) ?? output) : output,
  );
}

/** Leaves out secrets and all that is not plain data, such as a request; whatever a handler logs, it never throws. */
function plainFields(fields: object): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(fields, plainValue));
  } catch {
    return { fields: '[cannot be written]' };
  }
}

function plainValue(name: string, value: unknown): unknown {
  if (SECRET_NAME.test(name)) return REDACTED;
  if (name === 'err' && typeof value === 'string') return redact(value);
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return serializeError(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const type: unknown = value.constructor;
  return typeof type !== 'function' || type === Object ? value : `[${type.name}]`;
}

/** An error as it goes into the log: HTTP libraries hang whole requests, with tokens, on theirs. */
interface SerializedError {
  type: string;
  message: string;
  code?: string | number;
  status?: number;
  /** Where a line of the code is to blame: the app's own errors, and those with a code, say all in their message. */
  stack?: string;
  cause?: SerializedError;
}

function serializeError(error: Error, causes = 0, isHandlers = false): SerializedError {
  const { name, message, stack, cause, code, status, errors } = error as Error & Record<string, unknown>;
  const hasCode = typeof code === 'string' || typeof code === 'number';
  // A message may hold such lines, too.
  const frames = String(stack).indexOf(
    '\n    at ',
    String(stack).indexOf(String(message)) + String(message).length,
  );
  const inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  const isOfHandler = isHandlers || name === 'ConsumerError';
  return {
    type: String(name),
    message: beginningOf(String(message)),
    ...(hasCode && { code }),
    ...(typeof status === 'number' && { status }),
    ...((isHandlers || (BUG.test(name) && !hasCode)) &&
      frames >= 0 && { stack: redact(String(stack).slice(frames + 1, frames + LONGEST_FRAMES)) }),
    ...(inner instanceof Error &&
      causes < MOST_CAUSES && { cause: serializeError(inner, causes + 1, isOfHandler) }),
  };
}

function beginningOf(text: string): string {
  const hidden = redact(text);
  return hidden.length > LONGEST_MESSAGE ? `${hidden.slice(0, LONGEST_MESSAGE)}…` : hidden;
}

/** The process does not wait for a log reader that stands still, nor for space on a disk, until it ends. */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: 1, sync: false, maxLength: LONGEST_BACKLOG });
  output.on('error', () => {
    // At the exit it would try for ever: a terminal that was closed takes no more.
    output.flushSync = () => undefined;
  });
  return output;
}

/** pino-pretty is a development dependency: where it is not installed, the log is JSON. */
function prettyStream(destination: DestinationStream): DestinationStream | undefined {
  try {
    const pretty: unknown = createRequire(import.meta.url)('pino-pretty');
    if (typeof pretty !== 'function') return undefined;
    return pretty({ destination, sync: true, singleLine: true, ignore: LEFT_OUT_FOR_PEOPLE });
  } catch {
    return undefined;
  }
}
