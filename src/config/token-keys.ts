import { z } from 'zod';

/** Length of a key for AES-256. */
export const TOKEN_KEY_BYTES = 32;

/** A key that encrypts tokens at rest; the id goes into the envelope, so that old keys still decrypt. */
export interface TokenKey {
  id: string;
  key: Buffer;
}

/** `id:base64key[,id:base64key…]`, parsed; the messages name positions, never a key. */
export const tokenKeys = z.string().transform((text, context): TokenKey[] => {
  const keys: TokenKey[] = [];
  for (const [index, entry] of text.split(',').entries()) {
    const parsed = parseEntry(entry.trim());
    if (typeof parsed === 'string') {
      context.addIssue(`must be "id:base64key[,id:base64key…]": entry ${index + 1} ${parsed}`);
    } else {
      keys.push(parsed);
    }
  }
  if (new Set(keys.map(({ id }) => id)).size < keys.length) {
    context.addIssue('must not use an id twice');
  }
  if (new Set(keys.map(({ key }) => key.toString('hex'))).size < keys.length) {
    context.addIssue('must not contain a key twice');
  }
  return keys;
});

function parseEntry(entry: string): TokenKey | string {
  const colon = entry.indexOf(':');
  const id = entry.slice(0, Math.max(colon, 0));
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(id)) {
    return 'has no id of letters, digits, ".", "_" and "-" before a colon';
  }
  const encoded = entry.slice(colon + 1);
  const key = Buffer.from(encoded, 'base64');
  const padded = encoded.padEnd(Math.ceil(encoded.length / 4) * 4, '=');
  // Buffer.from skips what is not Base64: only a value that comes out again the same was Base64.
  if (key.toString('base64') !== padded) {
    return 'is not Base64 after the colon';
  }
  if (key.length !== TOKEN_KEY_BYTES) {
    return `is a key of ${key.length} bytes, ${TOKEN_KEY_BYTES} are needed`;
  }
  return { id, key };
}
