import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Fault } from '../types.ts';
import type { Answer } from './answer.ts';

/** Statuses that have no body (RFC 9110). */
const EMPTY = new Set([204, 205, 304]);

const encoder = new TextEncoder();
const room = new Uint8Array(2 ** 20);

/** The bytes of a body: a page of a list takes half the time that `Buffer.from` takes. */
function bytesOf(body: Answer['body']): Buffer {
  if (typeof body !== 'string' || body.length * 3 > room.length) return Buffer.from(body);
  return Buffer.from(room.subarray(0, encoder.encodeInto(body, room).written));
}

/** Sends an answer. @param now what the `Date` header says, in ms since 1970 */
export function send(response: ServerResponse, answer: Answer, now: number): void {
  response.end(writeHead(response, answer, now));
}

/**
 * Sends an answer in pieces, or only its beginning; it stops when the client goes away.
 *
 * @param most as many bytes of the body as are sent before the connection is closed; undefined for the whole
 * @param drip size of a piece in bytes, and the real milliseconds before each; undefined for one piece at once
 */
export async function sendPart(
  response: ServerResponse,
  answer: Answer,
  now: number,
  most: number | undefined,
  drip: Fault['drip'],
): Promise<void> {
  const body = writeHead(response, answer, now).subarray(0, most);
  response.flushHeaders();
  if (response.req.method === 'HEAD') return void response.end();
  const size = drip?.bytes ?? body.length;
  for (let sent = 0; sent < body.length && !response.destroyed; sent += size) {
    // A stopping process does not wait for the rest.
    if (drip !== undefined) await pause(drip.every_ms, undefined, { ref: false });
    response.write(body.subarray(sent, sent + size));
  }
  if (most === undefined) response.end();
  else response.socket?.destroySoon();
}

/** Writes the head, and answers the body's bytes. */
function writeHead(response: ServerResponse, { status, headers, body }: Answer, now: number): Buffer {
  const bytes = bytesOf(EMPTY.has(status) ? '' : body);
  // Node would put the machine's time here; the service's clock may be months away.
  response.sendDate = false;
  const length = status === 204 ? {} : { 'content-length': bytes.length };
  response.writeHead(status, { date: new Date(now).toUTCString(), ...headers, ...length });
  return bytes;
}
