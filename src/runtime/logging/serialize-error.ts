import { type ErrorWords, isExpected } from './expected-errors.ts';
import { shownPart } from './hide-secrets.ts';
import { isError, readField, UNREADABLE } from './read-field.ts';
import { redactValues } from './redact-values.ts';

const MAX_CAUSES = 5;

/** How much of a message, of a stack's frames, and of a name or another field is logged, in UTF-16 units. */
const LONGEST_MESSAGE = 4_000;
const LONGEST_FRAMES = 8_000;
const LONGEST_FIELD = 200;

/** Of a message that is an object, so many members are looked at. */
const MOST_MEMBERS = 500;

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

/** What is read of an error besides: whoever made it may have put anything in the place of a text. */
interface ErrorFacts extends ErrorWords {
  ownSecret: unknown;
}

/**
 * Turns an error into what may be logged: name, message, a few plain fields, the same of its causes, and the stack of
 * those that nobody expects. Everything else is left out: the errors of HTTP and OAuth libraries hold whole requests
 * and answers. A text that an error gives as its `ownSecret` is left out of what it and its causes say.
 *
 * It never throws, whatever the error's fields are, or do when they are read: a message that is an object is JSON.
 *
 * @param outer the errors that this one is the cause of
 */
export function serializeError(error: unknown, outer: readonly ErrorFacts[] = []): SerializedError {
  if (!isError(error)) {
    const own = ownSecretOf(outer);
    const message = typeof error === 'string' ? shownPart(error, LONGEST_MESSAGE, own) : 'not an Error';
    return { type: typeof error, message };
  }
  const facts = factsOf(error);
  const own = ownSecretOf([...outer, facts]);
  const serialized: SerializedError = {
    type: shownPart(facts.name, LONGEST_FIELD, own),
    message: shownPart(facts.message, LONGEST_MESSAGE, own),
  };
  const stack = readField(error, 'stack');
  if (typeof stack === 'string' && !isExpected(facts, outer)) serialized.stack = shownStack(stack, own);
  for (const field of KNOWN_FIELDS) {
    const value = readField(error, field);
    if (typeof value === 'number') serialized[field] = value;
    else if (typeof value === 'string') serialized[field] = shownPart(value, LONGEST_FIELD, own);
  }
  const cause = causeOf(error);
  if (isError(cause) || typeof cause === 'string') {
    if (outer.length < MAX_CAUSES) serialized.cause = serializeError(cause, [...outer, facts]);
  } else if (typeof cause === 'object' && cause !== null) {
    // An answer, where a library hands it on whole: what it was says enough.
    const status = readField(cause, 'status');
    if (typeof status === 'number') serialized.status ??= status;
  }
  return serialized;
}

function factsOf(error: Error): ErrorFacts {
  return {
    name: textOf(readField(error, 'name')) || 'Error',
    message: textOf(readField(error, 'message')),
    code: readField(error, 'code'),
    ownSecret: readField(error, 'ownSecret'),
  };
}

/** What stands in a text's place, as a text: nothing for nothing, and JSON for an object. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object') return String(value);
  // An error in there may be the one that this is the message of.
  const copy = redactValues(value, { left: MOST_MEMBERS, writeError: () => '[an error]' });
  if (typeof copy !== 'object') return String(copy);
  return JSON.stringify(copy, (_, member) => (typeof member === 'bigint' ? String(member) : member));
}

function causeOf(error: Error): unknown {
  const cause = readField(error, 'cause');
  if (cause !== undefined && cause !== null) return cause;
  const errors = error instanceof AggregateError ? readField(error, 'errors') : undefined;
  return Array.isArray(errors) ? readField(errors, 0) : undefined;
}

/** A stack repeats the message: however long that is, the frames are shown, too. */
function shownStack(stack: string, own: string | undefined): string {
  const end = stack.indexOf(FRAME);
  if (end === -1) return shownPart(stack, LONGEST_MESSAGE, own);
  return shownPart(stack.slice(0, end), LONGEST_MESSAGE, own) + shownPart(stack.slice(end), LONGEST_FRAMES);
}

/** What the outermost of these errors has for a secret of its own. */
function ownSecretOf(errors: readonly ErrorFacts[]): string | undefined {
  const secrets = errors.map(({ ownSecret }) => ownSecret).filter((secret) => typeof secret === 'string');
  return secrets.find((secret) => secret !== UNREADABLE);
}
