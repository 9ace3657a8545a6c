import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Method } from '../contract/api/route.ts';
import { STRAIGHT, serviceAgent } from './agent.ts';
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
  /** Path and query, where they are not to be sent as the URL writes them. */
  target?: string;
  headers?: Record<string, string>;
  /** JSON text. */
  body?: string;
  /**
   * Until when there has to be a connection for it, on the clock of `performance.now()`: it is not sent on one that comes
   * later, which is kept for others.
   */
  connectedBy?: number;
}

/** How long a request may take from start to end, in milliseconds; well under a window. */
export const REQUEST_TIMEOUT_MS = 20_000;

/** How long a connection is kept for a further request, in milliseconds. */
const KEPT_MS = 30_000;

/** How long {@link HttpClient.close} waits, in milliseconds. */
const CLOSE_LIMIT_MS = 1_000;

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
   */
  constructor(timeoutMs = REQUEST_TIMEOUT_MS, memory = new AnswerMemory(), wayOut = STRAIGHT) {
    this.#timeoutMs = timeoutMs;
    this.#memory = memory;
    this.#agent = serviceAgent(wayOut, KEPT_MS);
  }

  /**
   * @param signal ends the request early
   * @throws ServiceError to wait on, when there is no whole answer; `unsent` when the service has not got the request, and
   *   `permitOver` when that was for the time its connection took
   */
  send(
    { method, url, target, headers, body, connectedBy }: HttpRequest,
    signal?: AbortSignal,
  ): Promise<HttpAnswer> {
    if (signal?.aborted) return Promise.reject(brokenOff(signal));
    return new Promise((resolve, reject) => {
      const options = {
        origin: url.origin,
        path: target ?? url.pathname + url.search,
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
      const timeoutMs = this.#timeoutMs;
      const reader = new AnswerReader({ timeoutMs, connectedBy, memory, signal, resolve, reject });
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
