import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions, zstdDecompress } from 'node:zlib';
import { Agent, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import type { Method } from '../contract/api/route.ts';
import { HEADER } from '../contract/headers.ts';
import { ServiceError, unreadable } from './errors.ts';

/** Headers of an answer, names in lower case; of a repeated header the first, of `retry-after` all, with commas. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** An answer, read to its end and unpacked. Bytes that are not UTF-8 are read as U+FFFD. */
export interface HttpAnswer {
  status: number;
  headers: Headers;
  body: string;
}

/** A request to the service. */
export interface HttpRequest {
  method: Method | 'HEAD';
  url: URL;
  /** Path and query, where they are not to be sent as the URL writes them. */
  target?: string;
  headers?: Record<string, string>;
  /** JSON, unless the headers name another type. */
  body?: string;
}

/** How long a request may take from start to end, in milliseconds; well under a window. */
export const REQUEST_TIMEOUT_MS = 20_000;

/** How long a connection may take to come about, and how long one address of a name is tried, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
const ADDRESS_TIMEOUT_MS = 5_000;

/** How long the body of a refusal may take, in milliseconds: others must not run into the same refusal meanwhile. */
const REFUSAL_BODY_MS = 1_000;

/** How long a connection is kept for a further request, in milliseconds. */
const KEPT_MS = 30_000;

/** The largest body that is read, in bytes, packed and unpacked. A page of 100 records is far below. */
const MEGABYTE = 1024 * 1024;
const LARGEST_BODY_BYTES = 32 * MEGABYTE;

/** How long {@link HttpClient.close} waits, in milliseconds. */
const CLOSE_LIMIT_MS = 1_000;

/** How an HTTP client connects. */
interface HttpOptions {
  timeoutMs?: number;
  keptMs?: number;
  /** Whether the environment names a proxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). */
  usesProxy?: boolean;
  checksCertificates?: boolean;
}

/** Sends requests within limits of time and size. It never follows a redirect, as the token would go along. */
export class HttpClient {
  readonly #agent: Dispatcher;
  readonly #timeoutMs: number;

  constructor({ timeoutMs = REQUEST_TIMEOUT_MS, ...options }: HttpOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#agent = createAgent(options);
  }

  /**
   * @param signal ends the request early
   * @returns the answer, whatever its status
   * @throws ServiceError without a whole answer; `unsent` when the service surely has not got the request
   */
  async send({ method, url, target, headers, body }: HttpRequest, signal?: AbortSignal): Promise<HttpAnswer> {
    const timeout = AbortSignal.timeout(this.#timeoutMs);
    try {
      const response = await this.#agent.request({
        origin: url.origin,
        path: target ?? url.pathname + url.search,
        method,
        headers: {
          accept: 'application/json',
          'accept-encoding': 'identity',
          'user-agent': 'partner-app',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body ?? null,
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      const status = response.statusCode;
      const headersOnly = { status, headers: oneOfEach(response.headers), body: '' };
      if (status < 300) return { ...headersOnly, body: await readText(response) };
      // A refusal stays one, and its wait counts, though its body does not come.
      const late = setTimeout(() => response.body.destroy(), REFUSAL_BODY_MS);
      const words = await readText(response).catch(() => '');
      clearTimeout(late);
      signal?.throwIfAborted();
      return { ...headersOnly, body: words };
    } catch (error) {
      if (signal?.aborted) {
        throw new ServiceError('unreachable', 'The request was broken off.', { cause: signal.reason });
      }
      if (timeout.aborted) {
        const message = `The service did not answer within ${this.#timeoutMs / 1_000} seconds.`;
        throw new ServiceError('timeout', message, { cause: error });
      }
      throw error instanceof ServiceError ? error : connectionError(error as NodeJS.ErrnoException);
    }
  }

  /** Closes the connections; requests under way end first, if they do so within a second. */
  async close(): Promise<void> {
    await Promise.race([this.#agent.close(), sleep(CLOSE_LIMIT_MS, undefined, { ref: false })]);
    await this.#agent.destroy();
  }
}

/** A handler may set proxies and certificates for the whole process: requests with the app's secrets heed none of that. */
function createAgent({ keptMs = KEPT_MS, usesProxy, checksCertificates = true }: HttpOptions): Dispatcher {
  // Node gives every address of a name but the last 250 ms, which a far service does not keep.
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
    rejectUnauthorized: checksCertificates,
  };
  const options = {
    // To negotiate HTTP/2, all requests would wait for the first connection.
    allowH2: false,
    keepAliveTimeout: keptMs,
    maxResponseSize: LARGEST_BODY_BYTES,
    // One timer a request covers all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect,
  } satisfies Agent.Options;
  if (!usesProxy) return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    requestTls: connect,
    proxyTls: connect,
    // The tunnel through a proxy is part of the connection.
    clientFactory: (proxy, more) =>
      new Pool(proxy, { ...more, headersTimeout: CONNECT_TIMEOUT_MS, maxResponseSize: LARGEST_BODY_BYTES }),
  });
}

type Unpack = (packed: Uint8Array, options: ZlibOptions) => Promise<Buffer>;

const inflateZlib: Unpack = promisify(inflate);
const inflateBare: Unpack = promisify(inflateRaw);

/** The codings that services use although the app asks for none. */
const UNPACK: Readonly<Record<string, Unpack>> = {
  gzip: promisify(gunzip) as Unpack,
  // With the header of zlib (RFC 9110, section 8.4.1.2), or without it, as some send it.
  deflate: (packed, options) => ((packed[0] ?? 0) % 16 === 8 ? inflateZlib : inflateBare)(packed, options),
  br: promisify(brotliDecompress) as Unpack,
  zstd: promisify(zstdDecompress) as Unpack,
};

const UTF8 = new TextDecoder();

async function readText({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  const bytes = await body.bytes();
  const coding = String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase()
    // RFC 9110, section 8.4.1.3: x-gzip is gzip.
    .replace(/^x-/, '');
  if (bytes.length === 0 || coding === '' || coding === 'identity') return UTF8.decode(bytes);
  const unpack = Object.hasOwn(UNPACK, coding) ? UNPACK[coding] : undefined;
  const name = coding.slice(0, 20).replace(/[^\w-]/g, '?');
  if (unpack === undefined) throw unreadable('an answer', `the app cannot unpack it (${name})`);
  try {
    return UTF8.decode(await unpack(bytes, { maxOutputLength: LARGEST_BODY_BYTES }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw unreadable('an answer', `it is damaged (${name})`, error);
  }
}

/** The failures before a request is on its way: the name is not known, or nobody takes the call. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

/** As undici says that a proxy has refused a tunnel. */
const REFUSED_TUNNEL = /^Proxy response \((\d{3})\)/;

function connectionError(error: NodeJS.ErrnoException): ServiceError {
  if (error instanceof errors.ResponseExceededMaxSizeError) return tooLarge();
  const [, status] = REFUSED_TUNNEL.exec(error.message) ?? [];
  if (status !== undefined) {
    const message = `The proxy that leads to the service does not let the app through (${status}).`;
    return new ServiceError('unreachable', message, { cause: error, unsent: true });
  }
  const why = error instanceof errors.HTTPParserError ? error.message : error.code;
  const message = `The connection to the service failed${why === undefined ? '' : ` (${why})`}.`;
  const unsent = UNSENT.includes(error.code ?? '');
  return new ServiceError('unreachable', message, { cause: error, unsent });
}

function tooLarge(): ServiceError {
  const message = `The service's answer is larger than ${LARGEST_BODY_BYTES / MEGABYTE} megabytes.`;
  return new ServiceError('bad_answer', message);
}

function oneOfEach(headers: Record<string, string | string[] | undefined>): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      // Of several waits the longest is to be kept.
      Array.isArray(value) ? (name === HEADER.retryAfter ? value.join(', ') : value[0]) : value,
    ]),
  );
}
