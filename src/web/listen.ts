import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Express } from 'express';
import { listenError } from '../contract/listen-error.ts';

/** How long requests under way may take to end when the server closes, in milliseconds. */
const CLOSE_LIMIT_MS = 3_000;

/** How long the answers may take of what had to be waited for, in milliseconds. */
const ANSWER_MS = 500;

/** How often connections that have become idle are closed meanwhile, in milliseconds. */
const CLOSE_IDLE_EVERY_MS = 20;

/** Browsers send the cookies of parent domains along, tens of KB of them; Node's own limit of 16 KB answers an empty 431. */
const LARGEST_HEADERS_BYTES = 128 * 1_024;

/** When to try again at a process that is starting. */
const RETRY_AFTER_SECONDS = 5;

/** How long a client may take, in milliseconds: a connection costs little to open, and must not be held for nothing. */
const PATIENCE = {
  headersMs: 10_000,
  /** For a whole request: the app's forms are a few bytes. */
  requestMs: 20_000,
  /** Without a byte in either direction. What may take longer, as an install may, says so itself. */
  silentMs: 120_000,
  /** Between two requests. Proxies end an idle connection after 60 to 75 s, and must be first: else a request is lost. */
  idleMs: 90_000,
  /** How often the first two are looked at. */
  checkEveryMs: 1_000,
};

export type ClientPatience = typeof PATIENCE;

/** A port that is this process's own, before there is a web app to answer at it. */
export interface TakenPort {
  port: number;
  /**
   * Lets a web app answer from now on; the signal tells it that the process ends.
   *
   * @param settled resolves when nothing is under way that its clients must not be cut off from
   */
  serve(create: (shutdown: AbortSignal) => Express, settled?: () => Promise<unknown>): void;
  /** Takes no new requests, and waits a little for those under way, longer for what must not be cut off. */
  close(): Promise<void>;
}

/**
 * Listens at a port. Until there is a web app, every answer says to try again.
 *
 * @param address.port 0 takes a free one
 * @param address.variable where the port was set
 * @param patience with slow clients, where it is not the usual one
 * @throws Error with the variable to change when another process has the port, or it cannot be had at that host
 */
export async function takePort(
  address: { host: string; port: number; variable: 'PORT' | 'WORKER_PORT' },
  patience: Partial<ClientPatience> = {},
): Promise<TakenPort> {
  const { headersMs, requestMs, silentMs, idleMs, checkEveryMs } = { ...PATIENCE, ...patience };
  const shutdown = new AbortController();
  let answer: RequestListener = tellToTryAgain;
  let isSettled = async (): Promise<unknown> => undefined;
  const server = createServer(
    {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkEveryMs,
      maxHeaderSize: LARGEST_HEADERS_BYTES,
    },
    (req, res) => answer(req, res),
  );
  server.timeout = silentMs;
  server.keepAliveTimeout = idleMs;
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const variables = { hostVariable: 'HOST', portVariable: address.variable };
    throw listenError(error, { ...address, ...variables }) ?? error;
  }
  return {
    port: (server.address() as AddressInfo).port,
    serve: (create, settled) => {
      answer = create(shutdown.signal);
      isSettled = settled ?? isSettled;
    },
    close: () => {
      shutdown.abort();
      return closeServer(server, isSettled());
    },
  };
}

/** While a database is migrated, for minutes perhaps, the process is alive, and not ready. */
const tellToTryAgain: RequestListener = (req, res) => {
  const isAlive = req.url === '/healthz';
  res.writeHead(isAlive ? 200 : 503, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    ...(isAlive ? {} : { 'Retry-After': RETRY_AFTER_SECONDS }),
  });
  res.end(JSON.stringify({ status: isAlive ? 'alive' : 'starting' }));
};

async function closeServer(server: Server, settled: Promise<unknown>): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // Again and again, or a client that keeps asking on an open connection would keep the server.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const pause = (ms: number) => sleep(ms, undefined, { ref: false });
  await Promise.race([closed, Promise.all([pause(CLOSE_LIMIT_MS), settled.then(() => pause(ANSWER_MS))])]);
  server.closeAllConnections();
  // A request under way goes on when its client has gone.
  await Promise.all([closed, settled]);
  clearInterval(idle);
}
