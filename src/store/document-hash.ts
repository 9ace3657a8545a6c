import { hash } from 'node:crypto';

/** Enough that two documents never share one by chance: 132 bits. */
const LENGTH = 22;

/** What a document is compared by, so that its text need not be read again. */
export function documentHash(text: string | Buffer): string {
  return hash('sha256', text, 'base64url').slice(0, LENGTH);
}
