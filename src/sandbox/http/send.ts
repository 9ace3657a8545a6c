import type { ServerResponse } from 'node:http';
import type { Answer } from './answer.ts';

/** Statuses that have no body (RFC 9110). */
const EMPTY = new Set([204, 205, 304]);

/** Sends an answer. @param now what the `Date` header says, in ms since 1970 */
export function send(response: ServerResponse, answer: Answer, now: number): void {
  // Encoded once here: a string would be gone through twice, for its length and for the socket.
  const body = Buffer.from(EMPTY.has(answer.status) ? '' : answer.body);
  writeHead(response, answer, body.length, now);
  response.end(body);
}

/** Sends the head and the first bytes of the body, and then closes the connection. */
export function sendPart(response: ServerResponse, answer: Answer, bytes: number, now: number): void {
  const body = Buffer.from(answer.body);
  writeHead(response, answer, body.length, now);
  response.write(body.subarray(0, bytes), () => response.destroy());
}

function writeHead(response: ServerResponse, answer: Answer, length: number, now: number): void {
  // Node would put the machine's time here; the service's clock may be months away.
  response.sendDate = false;
  response.writeHead(answer.status, {
    date: new Date(now).toUTCString(),
    ...answer.headers,
    'content-length': length,
  });
}
