import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import type { LookupFunction } from 'node:net';
import { Problem } from '../http/answer.ts';
import { readBody } from '../http/body.ts';

const ANSWER_MAX_BYTES = 16 * 1024;

const LOOPBACK = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** `localhost`, the only name that is called, is this machine, whatever a resolver would say. */
const lookUp: LookupFunction = (_, { all }, done) =>
  all ? done(null, LOOPBACK) : done(null, '127.0.0.1', 4);

/** What a server answered. */
export interface Reply {
  status: number;
  body: string;
}

/** Why there is no answer to work with. */
export type NoReply = 'timeout' | 'too large' | 'unreachable';

/**
 * Posts a form to a server of this machine. Redirects are not followed, and the answer may have 16 KiB.
 *
 * @param timeoutMs real milliseconds until the whole answer must be there
 */
export async function postForm(
  url: URL,
  authorization: string,
  form: Record<string, string>,
  timeoutMs: number,
): Promise<Reply | NoReply> {
  const body = new URLSearchParams(form).toString();
  const signal = AbortSignal.timeout(timeoutMs);
  const headers = {
    authorization,
    accept: 'application/json',
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': Buffer.byteLength(body),
  };
  try {
    // An agent of its own: no kept connection, and no proxy that the environment may name.
    const outgoing = request(url, { method: 'POST', agent: new Agent(), lookup: lookUp, signal, headers });
    // Once the answer has begun, its reader hears of a failure.
    outgoing.on('error', () => {});
    outgoing.end(body);
    const [incoming]: IncomingMessage[] = await once(outgoing, 'response');
    if (incoming === undefined) return 'unreachable';
    const bytes = await readBody(incoming, ANSWER_MAX_BYTES);
    return { status: incoming.statusCode ?? 0, body: bytes.toString('utf8') };
  } catch (error) {
    if (error instanceof Problem) return 'too large';
    return signal.aborted ? 'timeout' : 'unreachable';
  }
}
