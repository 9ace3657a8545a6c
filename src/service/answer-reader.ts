import { type Dispatcher, errors } from 'undici';
import { HEADER } from '../contract/headers.ts';
import { type AnswerMemory, type LargeAnswer, SMALL_BYTES } from './answer-memory.ts';
import { ServiceError } from './errors.ts';
import type { Headers, HttpAnswer } from './http.ts';
import { LateConnectionError } from './late-connection.ts';

const MEGABYTE = 1024 * 1024;

/** The largest body that is read, in bytes. A page of 100 records is far below. */
const LARGEST_BODY_BYTES = 32 * MEGABYTE;

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** As much is read of an answer that refuses, in bytes: its status and headers count, and a few words. */
const LARGEST_REFUSAL_BYTES = 64 * 1024;

/** How long these few words are waited for, in milliseconds: what was refused is known, and others must not run into it. */
const REFUSAL_BODY_MS = 1_000;

/**
 * What goes wrong before a request is on its way: the name is not known, or nobody takes the call. A host or network that
 * cannot be reached is not among it: a connection that is open already may end so, too.
 */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']);

/** A timer that rings so late, in milliseconds, tells that the process, or its event loop, stood still. */
const LATE_MS = 500;

/** Limits and the two ends of one answer. */
export interface AnswerParts {
  timeoutMs: number;
  /** Until when there has to be a connection, on the clock of `performance.now()`. */
  connectedBy: number | undefined;
  /** Where it is counted while it is read. */
  memory: AnswerMemory;
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
  #timer: NodeJS.Timeout;
  readonly #endsAt: number;
  /** When the timer is to ring, on the same clock. */
  #ringsAt: number;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #bytes = 0;
  #counted = 0;
  #large: LargeAnswer | undefined;
  #hasWaited = false;
  #status = 0;
  #headers: Headers = {};
  #ended = false;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    this.#endsAt = performance.now() + parts.timeoutMs;
    this.#ringsAt = this.#endsAt;
    this.#timer = setTimeout(this.#onTimeout, parts.timeoutMs);
    parts.signal?.addEventListener('abort', this.#onAbort);
  }

  /** Called right before the request is written, which is when there is a connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error('nobody waits for it any more'));
    // Where the event loop stood still, the connection may be told of before the timer rings.
    else if (performance.now() > this.#endsAt) this.#fail(tooLateToSend());
    // Thrown, as undici ends the connection of what is aborted: it is good for the request that comes instead.
    else if (performance.now() > (this.#parts.connectedBy ?? Infinity)) throw connectedLate();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // What comes before the answer (102, 103) is none. At a 100, which no request asks for, undici ends the connection.
    if (status < 200) return;
    this.#status = status;
    this.#headers = oneOfEach(headers);
    if (this.#isRefusal()) {
      clearTimeout(this.#timer);
      const leftMs = Math.max(this.#endsAt - performance.now(), 0);
      this.#ringIn(Math.min(leftMs, REFUSAL_BODY_MS));
      return;
    }
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
    if (this.#bytes > this.#counted) this.#count();
  }

  #count(): void {
    const { memory } = this.#parts;
    if (this.#bytes <= SMALL_BYTES) {
      memory.take(this.#bytes - this.#counted);
      this.#counted = this.#bytes;
    } else if (this.#large === undefined) {
      const whole = Number(this.#headers['content-length']) || LARGEST_BODY_BYTES;
      this.#large = { bytes: whole, goOn: () => this.#goOn(whole) };
      if (memory.enter(this.#large)) this.#goOn(whole);
      else this.#pause();
    }
  }

  /** Nothing is taken from its connection until there is room. The request's time goes on: so does its permit's. */
  #pause(): void {
    this.#hasWaited = true;
    this.#controller?.pause();
  }

  /** It is counted as a large one from now on; what it lacks then is the service's. */
  #goOn(whole: number): void {
    this.#hasWaited = false;
    this.#parts.memory.give(this.#counted);
    this.#counted = whole;
    this.#controller?.resume();
  }

  onResponseEnd(): void {
    if (this.#end()) this.#resolve();
  }

  #resolve(): void {
    const [only] = this.#chunks;
    const whole =
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks, this.#bytes);
    // It is no JSON, and may be passed over (RFC 8259, section 8.1).
    const bytes = whole.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
      ? whole.subarray(BYTE_ORDER_MARK.length)
      : whole;
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
    this.#failInTime(error instanceof ServiceError ? error : connectionFailure(error));
  }

  #ringIn(ms: number): void {
    this.#ringsAt = performance.now() + ms;
    this.#timer = setTimeout(this.#onTimeout, ms);
  }

  readonly #onTimeout = (): void => {
    // The process stood still: what has come meanwhile is read before the time is over; but once, or a loop that is always
    // late would wait for ever.
    if (performance.now() - this.#ringsAt > LATE_MS) {
      this.#ringIn(LATE_MS);
      this.#ringsAt = Infinity;
      return;
    }
    const message = `The service did not answer within ${this.#parts.timeoutMs / 1_000} seconds.`;
    this.#failInTime(new ServiceError('wait', message, { kind: 'timeout' }));
  };

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

  /** What takes too long, or ends early, after it had to wait for room says nothing about the service. */
  #failInTime(error: ServiceError): void {
    this.#fail(this.#hasWaited ? noRoom(error) : error);
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
    const { memory } = this.#parts;
    if (this.#large !== undefined) memory.leave(this.#large);
    memory.give(this.#counted);
    return true;
  }
}

/** As undici says that a proxy has refused a tunnel. */
const REFUSED_TUNNEL = /^Proxy response \((\d{3})\)/;

/** What trouble with the connection means for its request. */
function connectionFailure(error: Error): ServiceError {
  const [, status] = REFUSED_TUNNEL.exec(error.message) ?? [];
  if (status !== undefined) {
    const message = `The proxy that leads to the service does not let the app through (${status}).`;
    return new ServiceError('wait', message, { cause: error, unsent: true });
  }
  const code = 'code' in error && error.code !== undefined ? String(error.code) : undefined;
  const why = error instanceof errors.HTTPParserError ? error.message : code;
  const message = `The connection to the service failed${why === undefined ? '' : ` (${why})`}.`;
  return new ServiceError('wait', message, { cause: error, unsent: code !== undefined && UNSENT.has(code) });
}

function tooLateToSend(): ServiceError {
  const message = 'The request was not sent: its time was over before there was a connection.';
  return new ServiceError('wait', message, { unsent: true });
}

function connectedLate(): ServiceError {
  const cause = new LateConnectionError();
  return new ServiceError('wait', cause.message, { cause, unsent: true, permitOver: true });
}

function tooLarge(): ServiceError {
  return new ServiceError(
    'wait',
    `The service's answer is larger than ${LARGEST_BODY_BYTES / MEGABYTE} megabytes.`,
    { kind: 'bad_answer' },
  );
}

function noRoom(cause: ServiceError): ServiceError {
  const message =
    'The app has so many large answers in memory that there was no room for another one: it is asked for again.';
  return new ServiceError('wait', message, { cause, noRoom: true });
}

function wasPacked(coding: string): ServiceError {
  const name = /^[\w-]{1,20}$/.test(coding) ? ` (${coding})` : '';
  return new ServiceError('wait', `The service packed its answer${name}, which it was asked not to do.`, {
    kind: 'bad_answer',
  });
}

/** The first, but of waits all: the longest is to be kept. In place: nobody else has this object. */
function oneOfEach(headers: Record<string, string | string[] | undefined>): Headers {
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = name === HEADER.retryAfter ? value.join(', ') : value[0];
  }
  return headers as Headers;
}
