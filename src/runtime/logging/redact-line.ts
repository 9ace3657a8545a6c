import { hideSecrets } from './hide-secrets.ts';
import { knownSecrets } from './known-secrets.ts';
import { isSecret, normalise, REDACTED, SECRET_NAMES } from './secret-names.ts';

/**
 * A line of the log with the secrets left out of each of its texts, and of the names that they have. As each is looked at
 * by itself, the line stays one JSON object, whatever the secrets are.
 */
export function redactLine(line: string): string {
  return `${JSON.stringify(JSON.parse(line, redactMember))}\n`;
}

function redactMember(name: string, value: unknown): unknown {
  if (typeof value === 'string') return isSecret(name, value) ? REDACTED : hideSecrets(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return SECRET_NAMES.has(normalise(name)) ? REDACTED : value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [knownSecrets.hide(key), member]));
}
