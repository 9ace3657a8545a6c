import { isSecret, normalise, REDACTED, SECRET_NAMES } from './secret-names.ts';
import { serializeError } from './serialize-error.ts';

const MAX_DEPTH = 8;

/**
 * Copies what is to be logged, at any depth: errors as {@link serializeError} writes them, and texts and lists under
 * a secret's name left out. Objects under such a name are looked into.
 */
export function redactValues(value: unknown, name = '', depth = 0): unknown {
  if (value instanceof Error) return serializeError(value);
  if (typeof value === 'string') return isSecret(name, value) ? REDACTED : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[too deep]';
  if (Buffer.isBuffer(value)) return `[${value.length} bytes]`;
  if (Array.isArray(value)) {
    if (SECRET_NAMES.has(normalise(name))) return REDACTED;
    return value.map((item) => redactValues(item, '', depth + 1));
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return value.toJSON();
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, redactValues(item, key, depth + 1)]),
  );
}
