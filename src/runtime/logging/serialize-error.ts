import { isExpected } from './expected-errors.ts';

const MAX_CAUSES = 5;

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
 * and answers.
 *
 * @param outer the errors that this one is the cause of
 */
export function serializeError(error: unknown, outer: readonly Error[] = []): SerializedError {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: typeof error === 'string' ? error : 'not an Error' };
  }
  const serialized: SerializedError = { type: error.name, message: error.message };
  if (error.stack !== undefined && !isExpected(error, outer)) serialized.stack = error.stack;
  for (const field of KNOWN_FIELDS) {
    const value: unknown = Reflect.get(error, field);
    if (typeof value === 'number' || typeof value === 'string') serialized[field] = value;
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
