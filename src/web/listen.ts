import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Express } from 'express';

/** How long requests under way may take to end when the server closes, in milliseconds. */
const CLOSE_LIMIT_MS = 3_000;

/** How often connections without a request are closed meanwhile, in milliseconds. */
const CLOSE_IDLE_EVERY_MS = 20;

/** A web app that listens. */
export interface ListeningWeb {
  port: number;
  /** Takes no new requests, ends live streams, waits a little for the others. */
  close(): Promise<void>;
}

/**
 * Makes the web app listen.
 *
 * @param address.port 0 takes a free one
 * @param create makes the app; the signal tells its streams to end
 * @throws Error with the variable to change when the port is taken
 */
export async function listen(
  address: { host: string; port: number },
  create: (shutdown: AbortSignal) => Express,
): Promise<ListeningWeb> {
  const shutdown = new AbortController();
  const server = create(shutdown.signal).listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw explain(error, address.port);
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      shutdown.abort();
      return closeServer(server);
    },
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // Again and again, or a client that keeps asking on an open connection would keep the server.
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_EVERY_MS);
  const limit = setTimeout(() => server.closeAllConnections(), CLOSE_LIMIT_MS);
  await closed;
  clearInterval(idle);
  clearTimeout(limit);
}

function explain(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'EADDRINUSE') return error;
  return new Error(`Port ${port} is in use: end what listens there, or set PORT to another one.`, {
    cause: error,
  });
}
