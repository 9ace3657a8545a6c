import { createHmac, timingSafeEqual } from 'node:crypto';

/** Always the same, so that a `next` URL works on after a restart; it keeps out mistakes, not attackers. */
const KEY = 'sandbox page token';
const POSITION_BYTES = 6;
const LIMIT_BYTES = 1;
const MAC_BYTES = 8;

/** Where a page starts, and how many results it may hold. */
export interface PageStart {
  position: number;
  limit: number;
}

function mac(list: string, data: Buffer): Buffer {
  return createHmac('sha256', KEY).update(list).update('\0').update(data).digest().subarray(0, MAC_BYTES);
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
  return Buffer.concat([data, mac(list, data)]).toString('base64url');
}

/** Reads a page token; undefined when it is not one of this list, or was changed. */
export function readPageToken(list: string, token: string): PageStart | undefined {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length !== POSITION_BYTES + LIMIT_BYTES + MAC_BYTES || bytes.toString('base64url') !== token) {
    return undefined;
  }
  const data = bytes.subarray(0, POSITION_BYTES + LIMIT_BYTES);
  if (!timingSafeEqual(mac(list, data), bytes.subarray(POSITION_BYTES + LIMIT_BYTES))) return undefined;
  return { position: data.readUIntBE(0, POSITION_BYTES), limit: data.readUInt8(POSITION_BYTES) };
}
