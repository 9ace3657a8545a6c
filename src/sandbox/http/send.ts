import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
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
  const body = bytesOf(EMPTY.has(answer.status) ? '' : answer.body);
  writeHead(response, answer, body.length, now);
  response.end(body);
}

/** Sends the head and the first bytes of the body, and then closes the connection. */
export function sendPart(response: ServerResponse, answer: Answer, bytes: number, now: number): void {
  const body = Buffer.from(answer.body);
  writeHead(response, answer, body.length, now);
  response.write(body.subarray(0, bytes), () => response.destroy());
}

/**
 * Sends the head at once, and the body in small pieces with a pause before each; it stops when the client goes away.
 *
 * @param most as many bytes of the body as are sent before the connection is closed; undefined for the whole
 */
export async function sendPieces(
  response: ServerResponse,
  answer: Answer,
  { bytes, every_ms: everyMs }: { bytes: number; every_ms: number },
  most: number | undefined,
  now: number,
): Promise<void> {
  const whole = Buffer.from(EMPTY.has(answer.status) ? '' : answer.body);
  writeHead(response, answer, whole.length, now);
  response.flushHeaders();
  const body = whole.subarray(0, most);
  for (let sent = 0; sent < body.length && !response.destroyed; sent += bytes) {
    // A stopping process does not wait for the rest.
    await pause(everyMs, undefined, { ref: false });
    response.write(body.subarray(sent, sent + bytes));
  }
  if (most === undefined) response.end();
  else response.destroy();
}

function writeHead(response: ServerResponse, answer: Answer, length: number, now: number): void {
  // Node would put the machine's time here; the service's clock may be months away.
  response.sendDate = false;
  response.writeHead(answer.status, {
    date: new Date(now).toUTCString(),
    ...answer.headers,
    ...(answer.status === 204 ? {} : { 'content-length': length }),
  });
}
