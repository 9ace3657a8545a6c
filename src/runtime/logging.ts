import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, pino } from 'pino';
import { hideSecrets } from './logging/hide-secrets.ts';
import { knownSecrets } from './logging/known-secrets.ts';
import { plainArguments } from './logging/plain-arguments.ts';
import { isError, readField } from './logging/read-field.ts';
import { redactLine } from './logging/redact-line.ts';
import { serializeError } from './logging/serialize-error.ts';
import { StandardOutput } from './logging/standard-output.ts';
import type { ProcessFacts } from './process-facts.ts';

export type { Logger } from 'pino';
export { hideSecrets };

const ERROR_LEVEL = pino.levels.values.error ?? 50;

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

/** What a person at a terminal does not read: it says which process this is, or stands in the message, too. */
const LEFT_OUT_FOR_PEOPLE = 'process,processId,version,method,route,status,ms';

/**
 * Creates the logger of a process. Callers make child loggers with the id of their request or job.
 * Secrets are left out by their names at any depth, by their looks in texts, and wherever they are known ones.
 *
 * @param config.logLevel a level of pino, or `silent`
 */
export function createLogger(
  config: { logLevel: string; production: boolean },
  options: LoggerOptions = {},
): Logger {
  const wantsPretty =
    options.pretty ?? (!config.production && options.destination === undefined && process.stdout.isTTY);
  const destination = options.destination ?? new StandardOutput();
  return pino(
    {
      level: config.logLevel,
      base: options.facts ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Of child loggers, instead of pino's own, which logs every field of an error.
      serializers: { err: (error: unknown) => (isError(error) ? serializeError(error) : error) },
      hooks: {
        logMethod(given, log, level) {
          if (level >= ERROR_LEVEL) tellError(given, options.onError);
          log.apply(this, plainArguments(given) as Parameters<typeof log>);
        },
        streamWrite: redactLine,
      },
    },
    wantsPretty ? (prettyStream(destination) ?? destination) : destination,
  );
}

/**
 * Tells that a text is a secret, whatever line of the log it comes up in: for good, if it is one of the configuration,
 * else until thousands of others have been in use since.
 */
export function rememberSecret(secret: string, { forGood = false } = {}): void {
  if (forGood) knownSecrets.pin(secret);
  else knownSecrets.add(secret);
}

/** Whether a text gives one of those away, so that it can be no id and no address: see {@link KnownSecrets.givesAway}. */
export function givesSecretAway(text: string): boolean {
  return knownSecrets.givesAway(text);
}

function tellError([first, text]: readonly unknown[], tell: LoggerOptions['onError']): void {
  const isFields = typeof first === 'object' && first !== null && !isError(first);
  const error = isFields ? readField(first, 'err') : first;
  if (isError(error))
    tell?.(error, { message: hideSecrets(typeof text === 'string' ? text : error.message) });
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
