import { Agent, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';

/** How long a connection may take to come about, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** As Node's own clients take them, in bytes. */
const USUAL_HEADERS_BYTES = 16 * 1_024;

/** The way out to the service. */
export interface WayOut {
  /** Whether a proxy that the environment names leads there (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). */
  usesProxy: boolean;
  /** Whether who answers has to have a certificate that somebody vouches for. */
  checksCertificates: boolean;
}

/** Where nothing is said. */
export const STRAIGHT: WayOut = { usesProxy: false, checksCertificates: true };

/**
 * Makes the connections to the service. A handler may set for all requests of the process how they are sent, or that no
 * certificate is checked, for a host of its own: requests with the secrets of the app heed none of that.
 *
 * @param keptMs how long a connection is kept for a further request, in milliseconds
 * @param maxHeaderSize of an answer, in bytes
 */
export function serviceAgent(
  { usesProxy, checksCertificates }: WayOut,
  keptMs: number,
  maxHeaderSize = USUAL_HEADERS_BYTES,
): Dispatcher {
  const tls = { rejectUnauthorized: checksCertificates };
  const options = {
    // To ask for HTTP/2, all requests would wait for the first connection, however long that takes.
    allowH2: false,
    keepAliveTimeout: keptMs,
    maxHeaderSize,
    // Limits of time for an answer are off: one timer a request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...tls },
  } satisfies Agent.Options;
  if (!usesProxy) return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    requestTls: tls,
    // To a proxy by https go its own credentials, and whatever is for an address by http.
    proxyTls: tls,
    // A tunnel through a proxy is a connection, too.
    clientFactory: (proxy, more) => new Pool(proxy, { ...more, headersTimeout: CONNECT_TIMEOUT_MS }),
  });
}
