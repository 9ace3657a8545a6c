/** What is thrown when the own logic took too long. */
export class OwnLogicTimeout extends Error {
  constructor(limitMs: number) {
    super(`It was not done after ${limitMs / 1_000} s of its own (OWN_LOGIC_TIMEOUT_SECONDS).`);
    this.name = 'OwnLogicTimeout';
  }
}

/**
 * The time of one call of the own logic. It stands still while a call of the service is under way: that may have to wait
 * for the limit for minutes, and has an end of its own.
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

  /**
   * @param limitMs how long it may take, in milliseconds
   * @param shutdown aborted when the process ends
   */
  constructor(limitMs: number, shutdown: AbortSignal) {
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
    this.#goOn();
    try {
      await Promise.race([work(), this.#over.promise]);
    } finally {
      this.#stand();
      this.#isRunning = false;
    }
  }

  /** Sees a call of the service through, whose time does not count. */
  readonly around = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (this.#calls++ === 0) this.#stand();
    try {
      return await call();
    } finally {
      if (--this.#calls === 0) this.#goOn();
    }
  };

  #goOn(): void {
    if (!this.#isRunning || this.#error !== undefined) return;
    this.#goesOnSince = performance.now();
    this.#timer = setTimeout(this.#end, this.#leftMs);
  }

  #stand(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#goesOnSince));
  }

  readonly #end = (): void => {
    this.#error = new OwnLogicTimeout(this.#limitMs);
    this.#ending?.abort(this.#error);
    this.#over.reject(this.#error);
  };
}
