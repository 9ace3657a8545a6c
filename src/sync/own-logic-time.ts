import { ServiceError } from '../client/errors.ts';

/** What is thrown when the own logic took too long. */
export class OwnLogicTimeout extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OwnLogicTimeout';
  }
}

/**
 * Calls of the service that are under way for longer are told, in milliseconds: a wait for the company's limit is over
 * sooner, as its window is a minute (Rate limits).
 */
const TOLD_AFTER_MS = 70_000;

/**
 * The longest that calls of the service may fail without one that is answered, in milliseconds, where the own logic
 * deals with that itself and calls again and again: longer than one of them may wait.
 */
const LONGEST_TROUBLE_MS = 15 * 60_000;

/**
 * The time of one call of the own logic. It stands still while a call of the service is under way: that may have to wait
 * for the limit for minutes, and has an end of its own. Only when calls have failed for long, one after the other, it is
 * over as well.
 */
export class OwnLogicTime {
  readonly #limitMs: number;
  readonly #shutdown: AbortSignal;
  readonly #over = Promise.withResolvers<never>();
  #ending: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #error: OwnLogicTimeout | undefined;
  #isRunning = false;
  #leftMs: number;
  #goesOnSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #calls = 0;
  #answeredAt = 0;
  readonly #onLongCall: (() => void) | undefined;
  #longCall: NodeJS.Timeout | undefined;

  /**
   * @param limitMs how long it may take, in milliseconds
   * @param shutdown aborted when the process ends
   * @param onLongCall told when calls of the service take long
   */
  constructor(limitMs: number, shutdown: AbortSignal, onLongCall?: () => void) {
    this.#onLongCall = onLongCall;
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
    this.#shutdown = shutdown;
  }

  /** Aborted when the time is over, or the process ends. Made when it is asked for: most pages need none. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#ending = new AbortController();
      if (this.#error !== undefined) this.#ending.abort(this.#error);
      this.#signal = AbortSignal.any([this.#shutdown, this.#ending.signal]);
    }
    return this.#signal;
  }

  /**
   * Runs the own logic. What has taken too long is left to itself: it cannot be stopped if it does not heed the signal.
   *
   * @throws OwnLogicTimeout when it is over; or what the work throws
   */
  async limit(work: () => Promise<void>): Promise<void> {
    this.#isRunning = true;
    this.#answeredAt = performance.now();
    this.#goOn();
    try {
      await Promise.race([work(), this.#over.promise]);
    } finally {
      this.#stand();
      clearTimeout(this.#longCall);
      this.#isRunning = false;
    }
  }

  /** Sees a call of the service through, whose time does not count. */
  readonly around = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (this.#calls++ === 0) {
      this.#stand();
      if (this.#isRunning && this.#onLongCall !== undefined) {
        this.#longCall = setTimeout(this.#onLongCall, TOLD_AFTER_MS);
      }
    }
    try {
      const answer = await call();
      this.#answeredAt = performance.now();
      return answer;
    } catch (error) {
      this.#failed(error);
      throw error;
    } finally {
      if (--this.#calls === 0) {
        clearTimeout(this.#longCall);
        this.#goOn();
      }
    }
  };

  #failed(error: unknown): void {
    const now = performance.now();
    // A refusal is an answer.
    if (!(error instanceof ServiceError) || error.remedy !== 'wait') this.#answeredAt = now;
    const troubleMs = now - this.#answeredAt;
    if (troubleMs < LONGEST_TROUBLE_MS) return;
    const minutes = Math.round(troubleMs / 60_000);
    this.#end(
      `Its calls of the service have failed for ${minutes} minutes, the last one: ${(error as ServiceError).message}`,
    );
  }

  #goOn(): void {
    if (!this.#isRunning || this.#error !== undefined) return;
    this.#goesOnSince = performance.now();
    this.#timer = setTimeout(() => {
      this.#end(`It was not done after ${this.#limitMs / 1_000} s of its own (OWN_LOGIC_TIMEOUT_SECONDS).`);
    }, this.#leftMs);
  }

  #stand(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#goesOnSince));
  }

  #end(reason: string): void {
    if (!this.#isRunning || this.#error !== undefined) return;
    this.#error = new OwnLogicTimeout(reason);
    this.#ending?.abort(this.#error);
    this.#over.reject(this.#error);
  }
}
