import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll } from 'vitest';

/** How the service answers a request instead of doing what it asks. */
interface Rude {
  path: RegExp;
  status: number;
  /** Members of the body beside those that repeat the request. */
  body?: Record<string, unknown>;
  times: number;
}

/** A service that hands everything on, and now and then answers with all that it was sent. */
export interface EchoProxy {
  origin: string;
  /** Hands on to this origin from now on. */
  lead(target: string): void;
  /** Bodies of the token route: what was asked, and what was answered. */
  tokenBodies: string[];
  /** Lets the next requests to a path fail, with their credentials and body repeated wherever an answer has room. */
  beRude(rude: Rude): void;
  /** Hands everything on again. */
  bePolite(): void;
}

/** Starts a proxy; it ends when the test file is through. */
export async function startEchoProxy(): Promise<EchoProxy> {
  const tokenBodies: string[] = [];
  const orders: Rude[] = [];
  let target = '';
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing));

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const path = incoming.url ?? '/';
    const order = orders.find((one) => one.path.test(path));
    if (order !== undefined) {
      order.times--;
      if (order.times === 0) orders.splice(orders.indexOf(order), 1);
      repeat(incoming, body.toString(), order, outgoing);
      return;
    }
    const { method } = incoming;
    const headers = { ...incoming.headers, host: new URL(target).host };
    const onward = request(`${target}${path}`, { method: method ?? 'GET', headers }, async (answer) => {
      const content = await buffer(answer);
      if (path.includes('/oauth/token')) tokenBodies.push(body.toString(), content.toString());
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(content);
    });
    onward.on('error', () => outgoing.destroy());
    onward.end(body);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => server.close().closeAllConnections());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    tokenBodies,
    lead: (origin) => {
      target = origin;
    },
    beRude: (rude) => orders.push(rude),
    bePolite: () => orders.splice(0),
  };
}

function repeat(incoming: IncomingMessage, body: string, order: Rude, outgoing: ServerResponse): void {
  const authorization = incoming.headers.authorization ?? '';
  const decoded = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
  const secret = /^Basic/.test(authorization)
    ? decoded.slice(decoded.indexOf(':') + 1)
    : authorization.replace(/^Bearer /, '');
  const sent = `${secret} ${[...new URLSearchParams(body).values()].join(' ')}`;
  const words = `You said ${sent} and ${authorization} and ${body}`;
  const { status } = order;
  outgoing.writeHead(status, { 'content-type': 'application/json', 'x-said': encodeURIComponent(words) });
  outgoing.end(
    JSON.stringify({
      _error: { status, title: words, message: sent },
      error: sent.slice(0, 400),
      error_description: words,
      ...order.body,
    }),
  );
}
