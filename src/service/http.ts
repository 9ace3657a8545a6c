import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib';
import { Agent, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from 'undici';
import type { Method } from '../contract/api/route.ts';
import { HEADER } from '../contract/headers.ts';
import { ServiceError, unreadable } from './errors.ts';

/** Headers of an answer, names in lower case. A repeated header has its first value, `retry-after` all, with commas. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** A whole answer, unpacked. Bytes that are not UTF-8 become U+FFFD. */
export interface HttpAnswer {
  status: number;
  headers: Headers;
  body: string;
}

export interface HttpRequest {
  method: Method | 'HEAD';
  url: URL;
  /** Path and query to send, where `url` would write them differently. */
  target?: string;
  headers?: Record<string, string>;
  /** JSON, unless the headers name another type. */
  body?: string;
}

/** How long a request may take in all, in milliseconds: well under a window. */
export const REQUEST_TIMEOUT_MS = 20_000;

/** How long a connection may take, and how long one address of a host is tried, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
const ADDRESS_TIMEOUT_MS = 5_000;

/** How long an idle connection stays open, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;

/** The largest body, packed or unpacked, in bytes. A page of 100 records is far smaller. */
const MEGABYTE = 1024 * 1024;
const LARGEST_BODY_BYTES = 32 * MEGABYTE;

/** The largest headers of an answer, in bytes: proxies add theirs. */
const LARGEST_HEADERS_BYTES = 64 * 1024;

/** The body of a refusal may take this long: the company's other requests wait for its `retry-after`. */
const REFUSAL_BODY_MS = 1_000;

/** How long {@link HttpClient.close} waits for requests, in milliseconds. */
const CLOSE_LIMIT_MS = 1_000;

interface HttpOptions {
  timeoutMs?: number;
  keepAliveMs?: number;
  /** Whether to use the proxy of HTTPS_PROXY, HTTP_PROXY and NO_PROXY. */
  usesProxy?: boolean;
  checksCertificates?: boolean;
  userAgent?: string;
}

/** Sends requests, limited in time and size. It follows no redirect, because the token would go along. */
export class HttpClient {
  readonly #agent: Dispatcher;
  readonly #timeoutMs: number;
  readonly #userAgent: string;

  constructor({ timeoutMs = REQUEST_TIMEOUT_MS, userAgent = 'partner-app', ...options }: HttpOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#userAgent = userAgent;
    this.#agent = createAgent(options);
  }

  /**
   * @param signal ends the request early
   * @returns the answer, whatever its status
   * @throws ServiceError without a whole answer; `unsent` if the request did not reach the service
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
          'user-agent': this.#userAgent,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body ?? null,
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      const answer = { status: response.statusCode, headers: oneOfEach(response.headers) };
      if (answer.status < 300) return { ...answer, body: await readText(response) };
      // Status and headers of a refusal count even if its body does not come.
      const late = setTimeout(() => response.body.destroy(), REFUSAL_BODY_MS);
      const text = await readText(response).catch(() => '');
      clearTimeout(late);
      signal?.throwIfAborted();
      return { ...answer, body: text };
    } catch (error) {
      if (signal?.aborted)
        throw new ServiceError('unreachable', 'The app ended the request.', { cause: signal.reason });
      if (timeout.aborted) {
        const message = `The service did not answer within ${this.#timeoutMs / 1_000} seconds.`;
        throw new ServiceError('timeout', message, { cause: error });
      }
      throw error instanceof ServiceError ? error : connectionError(error as NodeJS.ErrnoException);
    }
  }

  /** Closes the connections, and gives requests under way a second to end. */
  async close(): Promise<void> {
    await Promise.race([this.#agent.close(), sleep(CLOSE_LIMIT_MS, undefined, { ref: false })]);
    await this.#agent.destroy();
  }
}

/** An agent of our own: a handler may set proxy and certificates for the process, but the app's secrets ignore that. */
function createAgent({
  keepAliveMs = KEEP_ALIVE_MS,
  usesProxy,
  checksCertificates = true,
}: HttpOptions): Dispatcher {
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    // Node gives each address of a host 250 ms, too little for a far service.
    autoSelectFamilyAttemptTimeout: ADDRESS_TIMEOUT_MS,
    rejectUnauthorized: checksCertificates,
  };
  const options = {
    // With HTTP/2, all requests would wait for the first connection.
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    maxResponseSize: LARGEST_BODY_BYTES,
    maxHeaderSize: LARGEST_HEADERS_BYTES,
    // The request's own timer covers both.
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
      new Pool(proxy, {
        ...more,
        headersTimeout: CONNECT_TIMEOUT_MS,
        maxResponseSize: LARGEST_BODY_BYTES,
        maxHeaderSize: LARGEST_HEADERS_BYTES,
      }),
  });
}

type Unpack = (packed: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

const inflateZlib: Unpack = promisify(inflate);
const inflateBare: Unpack = promisify(inflateRaw);

/** Node unpacks the first frame alone, and a body may have several (RFC 8878, section 3.1). */
const unpackZstd: Unpack = async (packed, { maxOutputLength }) => {
  const frames: Buffer[] = [];
  let room = maxOutputLength;
  for (let at = 0; at < packed.length; ) {
    const { promise, resolve, reject } = Promise.withResolvers<InfoOfUnpacking>();
    const options = { maxOutputLength: Math.max(1, room), info: true };
    zstdDecompress(packed.subarray(at), options, (error, result) =>
      error === null ? resolve(result as unknown as InfoOfUnpacking) : reject(error),
    );
    const { buffer, engine } = await promise;
    frames.push(buffer);
    room -= buffer.length;
    at += engine.bytesWritten;
  }
  return Buffer.concat(frames);
};

/** What Node's functions of zlib answer with `info`: also how many bytes they have read. */
interface InfoOfUnpacking {
  buffer: Buffer;
  engine: { bytesWritten: number };
}

/** Some services pack answers although the app asks them not to. */
const UNPACK = new Map<string, Unpack>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  // Some servers leave out the header of zlib (RFC 9110, section 8.4.1.2).
  [
    'deflate',
    (packed, options) => ((packed[0] ?? 0) % 16 === 8 ? inflateZlib : inflateBare)(packed, options),
  ],
  ['br', promisify(brotliDecompress)],
  ['zstd', unpackZstd],
]);

const UTF8 = new TextDecoder();

async function readText({ headers, body }: Dispatcher.ResponseData): Promise<string> {
  const bytes = await body.bytes();
  const coding = String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase();
  if (bytes.length === 0 || coding === '' || coding === 'identity') return UTF8.decode(bytes);
  const unpack = UNPACK.get(coding);
  const name = coding.slice(0, 20).replace(/[^\w-]/g, '?');
  if (unpack === undefined) throw unreadable('an answer', `the app cannot unpack it (${name})`);
  try {
    return UTF8.decode(await unpack(bytes, { maxOutputLength: LARGEST_BODY_BYTES }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw unreadable('an answer', `it is damaged (${name})`, error);
  }
}

/** Codes of a connection that did not come about. */
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

/** What undici says when a proxy refuses the tunnel. */
const REFUSED_TUNNEL = /^Proxy response \((\d{3})\)/;

function connectionError(error: NodeJS.ErrnoException): ServiceError {
  if (error instanceof errors.ResponseExceededMaxSizeError) return tooLarge();
  const [, status] = REFUSED_TUNNEL.exec(error.message) ?? [];
  if (status !== undefined) {
    const message = `The proxy refused the connection to the service (${status}).`;
    return new ServiceError('unreachable', message, { cause: error, unsent: true });
  }
  const reason = error instanceof errors.HTTPParserError ? error.message : error.code;
  const message = `The connection to the service failed${reason === undefined ? '' : ` (${reason})`}.`;
  const unsent = UNSENT.includes(error.code ?? '');
  return new ServiceError('unreachable', message, { cause: error, unsent });
}

function tooLarge(): ServiceError {
  const message = `The service's answer is larger than ${LARGEST_BODY_BYTES / MEGABYTE} megabytes.`;
  return new ServiceError('bad_answer', message);
}

function oneOfEach(headers: Record<string, string | string[] | undefined>): Headers {
  const one = ([name, value]: [string, string | string[] | undefined]) => {
    if (!Array.isArray(value)) return [name, value];
    return [name, name === HEADER.retryAfter ? value.join(', ') : value[0]];
  };
  return Object.fromEntries(Object.entries(headers).map(one));
}
