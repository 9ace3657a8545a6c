import { isError, readField, UNREADABLE } from './read-field.ts';
import { isSecret, normalise, REDACTED, SECRET_NAMES } from './secret-names.ts';

const MAX_DEPTH = 8;

/** What a copy may take. */
export interface CopyLimits {
  /** How many members may still be copied; counted down. */
  left: number;
  /** What stands for an error. */
  writeError: (error: Error) => unknown;
}

/**
 * Copies what is to be logged, at any depth: errors as somebody else writes them, and texts and lists under
 * a secret's name left out. Objects under such a name are looked into. It never throws, whatever the value is.
 */
export function redactValues(value: unknown, limits: CopyLimits, name = '', depth = 0): unknown {
  try {
    return copyOf(value, limits, name, depth);
  } catch {
    return UNREADABLE;
  }
}

function copyOf(value: unknown, limits: CopyLimits, name: string, depth: number): unknown {
  if (isError(value)) return limits.writeError(value);
  if (typeof value === 'string') return isSecret(name, value) ? REDACTED : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[too deep]';
  if (Buffer.isBuffer(value)) return `[${value.length} bytes]`;
  const member = (key: PropertyKey, itsName: string): unknown =>
    limits.left-- > 0 ? redactValues(readField(value, key), limits, itsName, depth + 1) : '[too much]';
  if (Array.isArray(value)) {
    if (SECRET_NAMES.has(normalise(name))) return REDACTED;
    return value.slice(0, Math.max(limits.left, 0) + 1).map((_, index) => member(index, ''));
  }
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return redactValues(value.toJSON(), limits, name, depth + 1);
  const copy: [string, unknown][] = [];
  for (const key of Object.keys(value)) {
    const isLast = limits.left <= 0;
    copy.push([key, member(key, key)]);
    if (isLast) break;
  }
  return Object.fromEntries(copy);
}
