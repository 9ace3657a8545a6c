import { isExpected } from './expected-errors.ts';
import { shownPart } from './hide-secrets.ts';

const MAX_CAUSES = 5;

/** How much of a message, of a stack's frames, and of a name or another field is logged, in UTF-16 units. */
const LONGEST_MESSAGE = 4_000;
const LONGEST_FRAMES = 8_000;
const LONGEST_FIELD = 200;

/** How the first frame of a stack begins, behind the message. */
const FRAME = '\n    at ';

/** Only these fields of an error are logged: others carry requests, answers and with them tokens. */
const KNOWN_FIELDS = ['code', 'errno', 'syscall', 'status', 'statusCode', 'error', 'failure'] as const;

/** An error as it goes into the log. */
export interface SerializedError {
  type: string;
  message: string;
  stack?: string;
  cause?: SerializedError;
  [field: string]: unknown;
}

/**
 * Turns an error into what may be logged: name, message, a few plain fields, the same of its causes, and the stack of
 * those that nobody expects. Everything else is left out: the errors of HTTP and OAuth libraries hold whole requests
 * and answers. A text that an error gives as its `ownSecret` is left out of what it and its causes say.
 *
 * @param outer the errors that this one is the cause of
 */
export function serializeError(error: unknown, outer: readonly Error[] = []): SerializedError {
  const own = ownSecretOf([...outer, error]);
  if (!(error instanceof Error)) {
    const message = typeof error === 'string' ? shownPart(error, LONGEST_MESSAGE, own) : 'not an Error';
    return { type: typeof error, message };
  }
  const serialized: SerializedError = {
    type: shownPart(error.name, LONGEST_FIELD, own),
    message: shownPart(error.message, LONGEST_MESSAGE, own),
  };
  if (error.stack !== undefined && !isExpected(error, outer)) serialized.stack = shownStack(error.stack, own);
  for (const field of KNOWN_FIELDS) {
    const value: unknown = Reflect.get(error, field);
    if (typeof value === 'number') serialized[field] = value;
    else if (typeof value === 'string') serialized[field] = shownPart(value, LONGEST_FIELD, own);
  }
  const cause: unknown = error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
  if (cause instanceof Error || typeof cause === 'string') {
    if (outer.length < MAX_CAUSES) serialized.cause = serializeError(cause, [...outer, error]);
  } else if (typeof cause === 'object' && cause !== null && 'status' in cause) {
    // An answer, where a library hands it on whole: what it was says enough.
    if (typeof cause.status === 'number') serialized.status ??= cause.status;
  }
  return serialized;
}

/** A stack repeats the message: however long that is, the frames are shown, too. */
function shownStack(stack: string, own: string | undefined): string {
  const end = stack.indexOf(FRAME);
  if (end === -1) return shownPart(stack, LONGEST_MESSAGE, own);
  return shownPart(stack.slice(0, end), LONGEST_MESSAGE, own) + shownPart(stack.slice(end), LONGEST_FRAMES);
}

/** What the outermost of these errors has for a secret of its own. */
function ownSecretOf(errors: readonly unknown[]): string | undefined {
  for (const error of errors) {
    const own: unknown = error instanceof Error ? Reflect.get(error, 'ownSecret') : undefined;
    if (typeof own === 'string') return own;
  }
  return undefined;
}
