import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, EnvHttpProxyAgent, Pool } from 'undici';
import type { Method } from '../contract/api/route.ts';
import { AnswerMemory } from './answer-memory.ts';
import { AnswerReader } from './answer-reader.ts';
import { ServiceError } from './errors.ts';

/** Headers of an answer, names in lower case; of a repeated header the first, of `retry-after` all, with commas. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** An answer, read to its end. */
export interface HttpAnswer {
  status: number;
  headers: Headers;
  /** The body, made anew each time. */
  readonly body: string;
  /** The body as it came. */
  bytes: Buffer;
}

/** A request to the service. */
export interface HttpRequest {
  method: Method;
  url: URL;
  headers?: Record<string, string>;
  /** JSON text. */
  body?: string;
}

/** How long a request may take from start to end, in milliseconds; well under a window. */
export const REQUEST_TIMEOUT_MS = 20_000;

/** How long a connection may take to come about, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** How long {@link HttpClient.close} waits, in milliseconds. */
const CLOSE_LIMIT_MS = 1_000;

const AGENT_OPTIONS = {
  // To ask for HTTP/2, all requests would wait for the first connection, however long that takes.
  allowH2: false,
  keepAliveTimeout: 30_000,
  // Limits of time for an answer are off: one timer a request covers all of it.
  headersTimeout: 0,
  bodyTimeout: 0,
  connect: { timeout: CONNECT_TIMEOUT_MS },
} satisfies Agent.Options;

/** A tunnel through a proxy is a connection, too. */
const PROXY_OPTIONS = {
  ...AGENT_OPTIONS,
  clientFactory: (proxy, options) => new Pool(proxy, { ...options, headersTimeout: CONNECT_TIMEOUT_MS }),
} satisfies EnvHttpProxyAgent.Options;

/**
 * Sends requests to the service, never follows a redirect (the token would go along), and reads answers
 * within limits of time and size.
 */
export class HttpClient {
  readonly #agent: Dispatcher;
  readonly #timeoutMs: number;
  readonly #memory: AnswerMemory;

  /**
   * @param memory where answers are counted while they are read
   * @param usesProxy whether a proxy that the environment names leads out (HTTPS_PROXY, HTTP_PROXY, NO_PROXY)
   */
  constructor(timeoutMs = REQUEST_TIMEOUT_MS, memory = new AnswerMemory(), usesProxy = false) {
    this.#timeoutMs = timeoutMs;
    this.#memory = memory;
    this.#agent = usesProxy ? new EnvHttpProxyAgent(PROXY_OPTIONS) : new Agent(AGENT_OPTIONS);
  }

  /**
   * @param signal ends the request early
   * @throws ServiceError to wait on, when there is no whole answer; `unsent` when the service has not got the request
   */
  send({ method, url, headers, body }: HttpRequest, signal?: AbortSignal): Promise<HttpAnswer> {
    if (signal?.aborted) return Promise.reject(brokenOff(signal));
    return new Promise((resolve, reject) => {
      const options = {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: {
          accept: 'application/json',
          // Nothing said would mean that any is welcome (RFC 9110, section 12.5.3).
          'accept-encoding': 'identity',
          'user-agent': 'partner-app',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
      };
      const memory = this.#memory;
      const reader = new AnswerReader({ timeoutMs: this.#timeoutMs, memory, signal, resolve, reject });
      try {
        this.#agent.dispatch(options, reader);
      } catch (error) {
        reader.onResponseError(undefined, error as Error);
      }
    });
  }

  /** Closes the connections; requests under way end first, if they do so within a second. */
  async close(): Promise<void> {
    await Promise.race([this.#agent.close(), sleep(CLOSE_LIMIT_MS, undefined, { ref: false })]);
    await this.#agent.destroy();
  }
}

/** Nothing was sent for a signal that was given before. */
function brokenOff(signal: AbortSignal): ServiceError {
  return new ServiceError('wait', 'The request was broken off.', { cause: signal.reason, unsent: true });
}
