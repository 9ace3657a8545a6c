import { isError } from './read-field.ts';
import { redactValues } from './redact-values.ts';
import { serializeError } from './serialize-error.ts';

/** So many members of what is logged are copied: more come of objects that know each other in many ways. */
const MOST_MEMBERS = 20_000;

/**
 * What is to be logged, as copies without secrets, before pino looks at it: whoever logs what throws when it is looked at
 * gets a line, no error.
 *
 * @param given to a method of a logger: fields or an error, then words and their values; or these alone
 */
export function plainArguments([first, ...further]: readonly unknown[]): unknown[] {
  const texts = further.map(inWords);
  if (!isError(first)) return [plain(first), ...texts];
  const err = serializeError(first);
  return [{ err }, ...(texts.length === 0 ? [err.message] : texts)];
}

function plain(value: unknown): unknown {
  if (typeof value === 'symbol') return String(value);
  return redactValues(value, { left: MOST_MEMBERS, writeError: serializeError });
}

/** An error among the words of a line is one more of them. */
function inWords(value: unknown): unknown {
  if (!isError(value)) return plain(value);
  const { type, message } = serializeError(value);
  return `${type}: ${message}`;
}
