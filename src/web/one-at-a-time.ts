import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So many requests of one connection may wait for their turn: no browser, and hardly a proxy, sends any ahead. */
const MOST_WAITING = 20;

/**
 * Has requests that a client sends ahead of the answers before them (pipelining, RFC 9112, section 9.3.2) dealt with one
 * after the other. Node hands them on at once: an answer would stand ready for as long as its client likes, whatever it may
 * see by then, and out of reach of whatever is to end it.
 *
 * @param silentMs how long a connection may be silent, in milliseconds
 */
export function oneAtATime(answer: RequestListener, silentMs: number): RequestListener {
  const waiting = new WeakMap<Socket, number>();

  const wait = (req: IncomingMessage, res: ServerResponse) => {
    const { socket } = req;
    const ahead = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, ahead);
    if (ahead > MOST_WAITING) {
      socket.destroy();
      return;
    }
    res.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      // The request before may have asked for more, and Node sets that back only where a connection is idle in between.
      socket.setTimeout(silentMs);
      setImmediate(() => {
        if (!socket.destroyed) answer(req, res);
      });
    });
  };

  return (req, res) => {
    // It has its connection when its turn has come.
    if (res.socket === null) wait(req, res);
    else answer(req, res);
  };
}
