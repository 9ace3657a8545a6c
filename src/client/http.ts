import { Agent, request } from 'undici';
import type { Method } from '../contract/api/route.ts';
import { ServiceError } from './errors.ts';

/** Headers of an answer, names in lower case; of a repeated header the first. */
export type Headers = Readonly<Record<string, string | undefined>>;

/** An answer, read to its end. */
export interface HttpAnswer {
  status: number;
  headers: Headers;
  body: string;
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

/** The largest body that is read, in bytes. A page of 100 records is far below. */
const LARGEST_BODY_BYTES = 32 * 1024 * 1024;

/**
 * What goes wrong before a request is on its way: the name is not known, or nobody takes the call. A host or network that
 * cannot be reached is not among it: a connection that is open already may end so, too.
 */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/**
 * Sends requests to the service, never follows a redirect (the token would go along), and reads answers
 * within limits of time and size.
 */
export class HttpClient {
  readonly #agent = new Agent({ keepAliveTimeout: 30_000, connect: { timeout: 10_000 } });
  readonly #timeoutMs: number;

  constructor(timeoutMs = REQUEST_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * @param signal ends the request early
   * @throws ServiceError to wait on, when there is no whole answer; `unsent` when the service has not got the request
   */
  async send({ method, url, headers, body }: HttpRequest, signal?: AbortSignal): Promise<HttpAnswer> {
    const limit = AbortSignal.timeout(this.#timeoutMs);
    try {
      const answer = await request(url, {
        method,
        headers: {
          accept: 'application/json',
          'user-agent': 'partner-app',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
        dispatcher: this.#agent,
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      });
      return {
        status: answer.statusCode,
        headers: firstOfEach(answer.headers),
        body: await readText(answer.body),
      };
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      const unsent = UNSENT.has(codeOf(error) ?? '');
      throw new ServiceError('wait', describe(error, limit, this.#timeoutMs), { cause: error, unsent });
    }
  }

  /** Closes the connections; requests under way end first. */
  close(): Promise<void> {
    return this.#agent.close();
  }
}

async function readText(body: AsyncIterable<Buffer> & { destroy(): unknown }): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > LARGEST_BODY_BYTES) {
      body.destroy();
      throw new ServiceError('wait', `The service's answer is larger than ${LARGEST_BODY_BYTES} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function firstOfEach(headers: Record<string, string | string[] | undefined>): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
}

function describe(error: unknown, limit: AbortSignal, timeoutMs: number): string {
  if (limit.aborted) return `The service did not answer within ${timeoutMs / 1_000} seconds.`;
  const code = codeOf(error);
  return `The connection to the service failed${code === undefined ? '' : ` (${code})`}.`;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
