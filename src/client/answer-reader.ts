import type { Dispatcher } from 'undici';
import { ServiceError } from './errors.ts';
import type { Headers, HttpAnswer } from './http.ts';

const MEGABYTE = 1024 * 1024;

/** The largest body that is read, in bytes. A page of 100 records is far below. */
const LARGEST_BODY_BYTES = 32 * MEGABYTE;

/** As much is read of an answer that refuses, in bytes: its status and headers count, and a few words. */
const LARGEST_REFUSAL_BYTES = 64 * 1024;

/**
 * What goes wrong before a request is on its way: the name is not known, or nobody takes the call. A host or network that
 * cannot be reached is not among it: a connection that is open already may end so, too.
 */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/** Limits and the two ends of one answer. */
export interface AnswerParts {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  resolve(answer: HttpAnswer): void;
  /** Told a {@link ServiceError} to wait on. */
  reject(error: ServiceError): void;
}

/**
 * Takes one answer from the connection as it comes. In place of streams, a timer and two signals for every request:
 * those cost as much as reading the page.
 */
export class AnswerReader implements Dispatcher.DispatchHandler {
  readonly #parts: AnswerParts;
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #bytes = 0;
  #status = 0;
  #headers: Headers = {};
  #ended = false;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    this.#timer = setTimeout(() => {
      this.#fail(
        new ServiceError('wait', `The service did not answer within ${parts.timeoutMs / 1_000} seconds.`),
      );
    }, parts.timeoutMs);
    parts.signal?.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error('nobody waits for it any more'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // What comes before the answer ("100 Continue") is none.
    if (status < 200) return;
    this.#status = status;
    this.#headers = firstOfEach(headers);
    if (this.#isRefusal()) return;
    if (Number(this.#headers['content-length']) > LARGEST_BODY_BYTES) this.#fail(tooLarge());
    // Unpacked, a few bytes may be gigabytes.
    // Names of codings know no case (RFC 9110, section 8.4.1), and an empty header names none.
    const packed = this.#headers['content-encoding']?.trim().toLowerCase() ?? '';
    if (packed !== '' && packed !== 'identity') this.#fail(wasPacked(packed));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#ended) return;
    const most = this.#isRefusal() ? LARGEST_REFUSAL_BYTES : LARGEST_BODY_BYTES;
    if (this.#bytes + chunk.length > most) {
      this.#fail(tooLarge());
      return;
    }
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#end()) this.#resolve();
  }

  #resolve(): void {
    const [only] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#bytes);
    this.#parts.resolve({
      status: this.#status,
      headers: this.#headers,
      bytes,
      get body() {
        return bytes.toString('utf8');
      },
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(connectionFailure(error));
  }

  readonly #onAbort = (): void => {
    this.#breakOff(
      new ServiceError('wait', 'The request was broken off.', { cause: this.#parts.signal?.reason }),
      (error) => this.#parts.reject(error),
    );
  };

  /** What was refused stays refused, and has to wait as long as was said, though the rest of the answer is missing. */
  #fail(error: ServiceError): void {
    this.#breakOff(error, () => (this.#isRefusal() ? this.#resolve() : this.#parts.reject(error)));
  }

  #breakOff(error: ServiceError, tell: (error: ServiceError) => void): void {
    if (!this.#end()) return;
    this.#controller?.abort(error);
    tell(error);
  }

  #isRefusal(): boolean {
    return this.#status >= 300;
  }

  /** @returns false when it had ended before */
  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#parts.signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

/** What trouble with the connection means for its request. */
function connectionFailure(error: Error): ServiceError {
  const code = 'code' in error ? String(error.code) : undefined;
  const message = `The connection to the service failed${code === undefined ? '' : ` (${code})`}.`;
  return new ServiceError('wait', message, { cause: error, unsent: code !== undefined && UNSENT.has(code) });
}

function tooLarge(): ServiceError {
  return new ServiceError(
    'wait',
    `The service's answer is larger than ${LARGEST_BODY_BYTES / MEGABYTE} megabytes.`,
  );
}

function wasPacked(coding: string): ServiceError {
  const name = /^[\w-]{1,20}$/.test(coding) ? ` (${coding})` : '';
  return new ServiceError('wait', `The service packed its answer${name}, which it was asked not to do.`);
}

/** In place: nobody else has this object. */
function firstOfEach(headers: Record<string, string | string[] | undefined>): Headers {
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = value[0];
  }
  return headers as Headers;
}
