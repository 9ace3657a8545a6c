import { hash } from 'node:crypto';

/** Always the same, so that a `next` URL works on after a restart; it keeps out mistakes, not attackers. */
const KEY = 'sandbox page token';
const POSITION_BYTES = 6;
const LIMIT_BYTES = 1;
const SEAL_BYTES = 8;

/** Where a page starts, and how many results it may hold. */
export interface PageStart {
  position: number;
  limit: number;
}

/** Only who knows the key can make one; the list cannot run into the data, as that has a fixed length. */
function seal(list: string, data: Buffer): Buffer {
  return hash('sha256', `${KEY}\0${list}\0${data.toString('hex')}`, 'buffer').subarray(0, SEAL_BYTES);
}

/**
 * Writes an opaque page token.
 *
 * @param list what the token is good for, and for nothing else: company and path
 */
export function writePageToken(list: string, { position, limit }: PageStart): string {
  const data = Buffer.alloc(POSITION_BYTES + LIMIT_BYTES);
  data.writeUIntBE(position, 0, POSITION_BYTES);
  data.writeUInt8(limit, POSITION_BYTES);
  return Buffer.concat([data, seal(list, data)]).toString('base64url');
}

/** Reads a page token; undefined when it is not one of this list, or was changed. */
export function readPageToken(list: string, token: string): PageStart | undefined {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== POSITION_BYTES + LIMIT_BYTES + SEAL_BYTES || bytes.toString('base64url') !== token) {
    return undefined;
  }
  const data = bytes.subarray(0, POSITION_BYTES + LIMIT_BYTES);
  if (!seal(list, data).equals(bytes.subarray(POSITION_BYTES + LIMIT_BYTES))) return undefined;
  return { position: data.readUIntBE(0, POSITION_BYTES), limit: data.readUInt8(POSITION_BYTES) };
}
