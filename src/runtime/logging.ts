import fs from 'node:fs';
import { createRequire } from 'node:module';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { CompanyFinder } from './company-finder.ts';
import type { ProcessFacts } from './process-facts.ts';
import { blankSecrets, hasSecretName, REDACTED, redact } from './redaction.ts';

export type { Logger } from 'pino';

const WARN_LEVEL = pino.levels.values.warn ?? 40;
const ERROR_LEVEL = pino.levels.values.error ?? 50;

/** The longest message and stack in a line, in UTF-16 units. */
const LONGEST_MESSAGE = 2_000;
const LONGEST_FRAMES = 4_000;

const MOST_CAUSES = 5;

/** The UTF-16 units that wait for a stopped reader; the log loses later lines. */
const LONGEST_BACKLOG = 4 * 1024 * 1024;

/** How long a full output rests before the next try, in milliseconds. */
const BUSY_MS = 100;

/** Errors of JavaScript itself. */
const BUG = /^(?:Aggregate|Eval|Range|Reference|Syntax|Type|URI)?Error$/;

/** Fields with ids of the app and of records, which may look like tokens. */
const IDS: readonly string[] = ['requestId', 'record', 'writeKey', 'job'];

/** They could move the cursor of a terminal, or forge a line there. */
const CONTROLS = /\p{Cc}/gu;

/** A person at a terminal knows the process, and reads the rest in the message. */
const LEFT_OUT_FOR_PEOPLE = 'process,processId,version,method,route,status,ms';

export interface LoggerOptions {
  /** Text for people instead of JSON lines; by default in development on a terminal. */
  pretty?: boolean;
  /** Replaces the standard output. */
  destination?: DestinationStream;
  /** Part of every JSON line. */
  facts?: ProcessFacts;
  /** Lines at `warn` and above that name an instance say of which company it is, and where its page is. */
  companies?: CompanyFinder;
  /** Gets the error, which may hold secrets, and the message of each line at `error` or `fatal`. It must not log. */
  onError?: (error: Error, line: { message: string }) => void;
}

/**
 * Creates the logger of a process; requests and jobs make child loggers. It blanks fields with the name of a secret,
 * redacts all texts, and logs only the listed fields of an error. The fork's secrets are blanked everywhere.
 *
 * @param config.logLevel a level of pino, or `silent`
 */
export function createLogger(
  config: { logLevel: string; production: boolean },
  { pretty, destination, facts, companies, onError }: LoggerOptions = {},
): Logger {
  const isForPeople = pretty ?? (!config.production && destination === undefined && process.stdout.isTTY);
  const output = destination ?? standardOutput();
  const shown = (text: string) =>
    isForPeople ? redact(text).replace(CONTROLS, escapeControl) : redact(text);
  const logger = pino(
    {
      level: config.logLevel,
      base: facts ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // pino's own `redact` throws at a URL or a Buffer if it must look into fields of any name.
      formatters: { level: (label) => ({ level: label }), log: plainFields },
      // For child loggers: pino's own serializer logs every field of an error.
      serializers: { err: (error: unknown) => plainFields({ err: error }).err },
      hooks: {
        logMethod([first, ...rest]: unknown[], log, level) {
          const error = errorOf(first);
          // As pino does with a line without a message.
          if (error instanceof Error && rest.length === 0) rest.push(String(error.message));
          const [fields, ...texts] = [first, ...rest].map((one, at) => {
            if (typeof one === 'string') return shown(one);
            return at > 0 && typeof one === 'object' && one !== null ? plainFields({ one }).one : one;
          });
          if (level >= ERROR_LEVEL && error instanceof Error) onError?.(error, { message: String(texts[0]) });
          const write = (of: object | undefined) => {
            const line =
              typeof fields === 'string' ? [of, fields] : [of ? { ...asFields(fields), ...of } : fields];
            log.apply(this, [...line.filter((part) => part !== undefined), ...texts] as Parameters<
              typeof log
            >);
          };
          const instanceId =
            level < WARN_LEVEL ? undefined : (instanceOf(fields) ?? instanceOf(this.bindings()));
          const about = instanceId === undefined ? undefined : companies?.of(instanceId);
          if (about instanceof Promise) void about.then(write);
          else write(about);
        },
        streamWrite: blankSecrets,
      },
    },
    isForPeople ? (prettyStream(output) ?? output) : output,
  );
  // pino's formatter of bindings does not see those of child loggers, which inherit this function.
  const { child } = logger;
  logger.child = function (this: Logger, bindings: object, options) {
    return child.call(this, plainFields(bindings), options);
  } as Logger['child'];
  return logger;
}

/** The error of a line, if there is one. A getter may throw. */
function errorOf(first: unknown): unknown {
  if (first instanceof Error) return first;
  try {
    return (first as { err?: unknown } | undefined)?.err;
  } catch {
    return undefined;
  }
}

/** As pino takes an error in place of fields. */
function asFields(fields: unknown): object {
  return fields instanceof Error ? { err: fields } : Object(fields);
}

function instanceOf(fields: unknown): unknown {
  return (fields as { instanceId?: unknown } | undefined)?.instanceId;
}

function escapeControl(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Leaves out secrets and everything that is not plain data, such as a request. It never throws. */
function plainFields(fields: object): Record<string, unknown> {
  try {
    const plain = JSON.parse(JSON.stringify(fields, plainValue));
    return typeof plain === 'object' && plain !== null ? plain : { fields: plain };
  } catch {
    return { fields: '[cannot be written]' };
  }
}

/** For JSON.stringify, which has called `toJSON` by then. */
function plainValue(this: unknown, name: string, value: unknown): unknown {
  if (hasSecretName(name)) return REDACTED;
  if (ArrayBuffer.isView((this as Record<string, unknown>)[name])) return '[Buffer]';
  if (typeof value === 'string') return redact(value, IDS.includes(name));
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return serializeError(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const type: unknown = value.constructor;
  return typeof type !== 'function' || type === Object ? value : `[${type.name}]`;
}

/**
 * The listed fields of an error: HTTP libraries put whole requests, with tokens, on theirs. The stack is there only if
 * a line of the code is to blame: the app's own errors, and those with a code, say all in their message.
 */
function serializeError(error: Error, causes = 0, isHandlers = false): Record<string, unknown> {
  const { name, cause, code, status, errors } = error as Error & Record<string, unknown>;
  const [message, stack] = [String(error.message), String(error.stack)];
  const hasCode = typeof code === 'string' || typeof code === 'number';
  const hidden = redact(message);
  // A message may hold such lines, too.
  const frames = stack.indexOf('\n    at ', stack.indexOf(message) + message.length);
  const hasStack = frames >= 0 && (isHandlers || (BUG.test(name) && !hasCode));
  const inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  const hasCause = inner instanceof Error && causes < MOST_CAUSES;
  return {
    type: redact(String(name)),
    message: hidden.length > LONGEST_MESSAGE ? `${hidden.slice(0, LONGEST_MESSAGE)}…` : hidden,
    ...(hasCode && { code: typeof code === 'string' ? redact(code) : code }),
    ...(typeof status === 'number' && { status }),
    ...(hasStack && { stack: redact(stack.slice(frames + 1, frames + LONGEST_FRAMES)) }),
    ...(hasCause && { cause: serializeError(inner, causes + 1, isHandlers || name === 'ConsumerError') }),
  };
}

/**
 * The standard output. A stopped log reader or a full disk does not stop the process, nor its end: pino's own
 * destination tries a failed write at the exit again, without an end.
 */
function standardOutput(): DestinationStream & { flushSync(): void } {
  let waiting = '';
  let isWriting = false;
  const write = (bytes: Buffer): void => {
    isWriting = true;
    fs.write(1, bytes, (err, written = 0) => {
      if (err?.code === 'EAGAIN') return setTimeout(write, BUSY_MS, bytes).unref();
      if (!err && written < bytes.length) return write(bytes.subarray(written));
      isWriting = false;
      send();
    });
  };
  const send = (): void => {
    if (isWriting || waiting === '') return;
    const bytes = Buffer.from(waiting);
    waiting = '';
    write(bytes);
  };
  const flushSync = (): void => {
    let bytes = Buffer.from(waiting);
    waiting = '';
    try {
      while (bytes.length > 0) bytes = bytes.subarray(fs.writeSync(1, bytes));
    } catch {
      // Nothing can take these lines.
    }
  };
  process.on('exit', flushSync);
  return {
    write: (line) => {
      if (waiting.length + line.length <= LONGEST_BACKLOG) waiting += line;
      send();
    },
    flushSync,
  };
}

/** Without pino-pretty, a development dependency, the log is JSON. */
function prettyStream(destination: DestinationStream): DestinationStream | undefined {
  try {
    const pretty: unknown = createRequire(import.meta.url)('pino-pretty');
    if (typeof pretty !== 'function') return undefined;
    return pretty({ destination, sync: true, singleLine: true, ignore: LEFT_OUT_FOR_PEOPLE });
  } catch {
    return undefined;
  }
}
