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
 * Turns an error into what may be logged: name, message, stack, a few plain fields, and the same of its causes.
 * Everything else is left out: the errors of HTTP and OAuth libraries hold whole requests and answers.
 */
export function serializeError(error: unknown, depth = 0): SerializedError {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: typeof error === 'string' ? error : 'not an Error' };
  }
  const serialized: SerializedError = { type: error.name, message: error.message };
  if (error.stack !== undefined) serialized.stack = error.stack;
  for (const field of KNOWN_FIELDS) {
    const value: unknown = Reflect.get(error, field);
    if (typeof value === 'number' || typeof value === 'string') serialized[field] = value;
  }
  const cause: unknown = error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined);
  if (cause !== undefined && depth < MAX_CAUSES) serialized.cause = serializeError(cause, depth + 1);
  return serialized;
}
