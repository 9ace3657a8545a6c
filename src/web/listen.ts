import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Express } from 'express';
import { listenError } from '../contract/listen-error.ts';

/** How long open requests may take when the server closes. */
const CLOSE_LIMIT_MS = 3_000;

/** How long their answers may take after that. */
const ANSWER_MS = 500;

const CLOSE_IDLE_EVERY_MS = 20;

/** Browsers add the cookies of parent domains, tens of KB. Node's default of 16 KB answers an empty 431. */
const LARGEST_HEADERS_BYTES = 128 * 1_024;

const RETRY_AFTER_SECONDS = 5;

/** How long a client may take, in milliseconds. All but the last are options of Node's server. */
const PATIENCE = {
  headersTimeout: 10_000,
  /** For a whole request. */
  requestTimeout: 20_000,
  /** How often the first two are looked at. */
  connectionsCheckingInterval: 1_000,
  /** Between two requests. Proxies close idle connections after 60 to 75 s and must be first, or a request is lost. */
  keepAliveTimeout: 90_000,
  /** Without a byte in either direction. An install sets its own. */
  silentMs: 120_000,
};

export type ClientPatience = typeof PATIENCE;

/** A port that this process listens on, with or without a web app. */
export interface TakenPort {
  port: number;
  /**
   * Lets a web app answer from now on. The signal aborts when the process ends.
   *
   * @param settled resolves when no install is under way
   */
  serve(create: (shutdown: AbortSignal) => Express, settled?: () => Promise<unknown>): void;
  /** Takes no new requests, and waits for those under way. */
  close(): Promise<void>;
}

/**
 * Listens on a port. Until there is a web app, every answer is 503.
 *
 * @param address.port 0 takes a free one
 * @param address.variable the variable that an error names
 * @throws Error that says what to change if the port cannot be used
 */
export async function takePort(
  address: { host: string; port: number; variable: 'PORT' | 'WORKER_PORT' },
  patience: Partial<ClientPatience> = {},
): Promise<TakenPort> {
  const { silentMs, ...timeouts } = { ...PATIENCE, ...patience };
  const shutdown = new AbortController();
  let answer: RequestListener = tellToTryAgain;
  let isSettled = async (): Promise<unknown> => undefined;
  const options = { ...timeouts, maxHeaderSize: LARGEST_HEADERS_BYTES };
  const server = createServer(options, (req, res) => answer(req, res));
  server.timeout = silentMs;
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

/** During a long migration the process is alive, but not ready. */
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
  // A client that keeps asking on an open connection would keep the server.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const pause = (ms: number) => sleep(ms, undefined, { ref: false });
  await Promise.race([closed, Promise.all([pause(CLOSE_LIMIT_MS), settled.then(() => pause(ANSWER_MS))])]);
  server.closeAllConnections();
  // A request goes on after its client has gone.
  await Promise.all([closed, settled]);
  clearInterval(idle);
}
