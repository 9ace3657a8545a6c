import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { afterAll } from 'vitest';

/** How the service answers a request instead of doing what it asks. */
interface Rude {
  path: RegExp;
  status: number;
  /** Members of the body beside those that repeat the request. */
  body?: Record<string, unknown>;
  /** Seconds that it asks to wait. */
  retryAfter?: number;
  times: number;
}

/** A service that hands everything on, and now and then answers with what it was sent. */
export interface EchoProxy {
  origin: string;
  /** Hands on to this origin from now on. */
  lead(target: string): void;
  /** Bodies of the token route: what was asked, and what was answered. */
  tokenBodies: string[];
  /** Lets the next requests to a path fail, with their credentials and body repeated wherever an answer has room. */
  beRude(rude: Rude): void;
  /** Changes good answers of a path from now on, by the access token that they were asked with. */
  amend(path: RegExp, change: (body: Record<string, unknown>, token: string) => unknown): void;
  /** Hands everything on again. */
  bePolite(): void;
}

/** Starts a proxy; it ends when the test file is through. */
export async function startEchoProxy(): Promise<EchoProxy> {
  const tokenBodies: string[] = [];
  const orders: Rude[] = [];
  const amendments: { path: RegExp; change: Parameters<EchoProxy['amend']>[1] }[] = [];
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
      const amendment = amendments.find((one) => one.path.test(path));
      if (amendment === undefined || answer.statusCode !== 200) {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(content);
        return;
      }
      const token = (incoming.headers.authorization ?? '').replace(/^Bearer /, '');
      const amended = JSON.stringify(amendment.change(JSON.parse(content.toString()), token));
      outgoing
        .writeHead(200, { ...answer.headers, 'content-length': Buffer.byteLength(amended) })
        .end(amended);
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
    amend: (path, change) => amendments.push({ path, change }),
    bePolite: () => {
      orders.splice(0);
      amendments.splice(0);
    },
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
  const { status, retryAfter } = order;
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'x-said': encodeURIComponent(words),
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  });
  outgoing.end(
    JSON.stringify({
      _error: { status, title: words, message: sent },
      error: sent.slice(0, 400),
      error_description: words,
      ...order.body,
    }),
  );
}
