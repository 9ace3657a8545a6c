import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../client/errors.ts';

/** What is thrown when the own logic took too long. */
export class OwnLogicTimeout extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'OwnLogicTimeout';
  }
}

/**
 * Work that takes longer is told, in milliseconds: a wait for the company's limit is over sooner, as its window is a
 * minute (Rate limits).
 */
const TOLD_AFTER_MS = 70_000;

/**
 * The longest that calls of the service may fail without one that is answered, in milliseconds, where the own logic
 * deals with that itself and calls again and again: longer than one of them may wait.
 */
const LONGEST_TROUBLE_MS = 15 * 60_000;

/**
 * How long the work may take beyond its own time, in milliseconds, for the sake of its calls of the service: at 120 a
 * minute these are 3,600. Each of them has an end, but nothing else would end work that never ceases to call.
 */
const LONGEST_CALLS_MS = 30 * 60_000;

/**
 * How long the work may take when the process ends, in milliseconds: what heeds the signal comes to its end by then, and
 * is written. All that a process closes has ten seconds together.
 */
const ENDING_MS = 2_000;

/** How long a call takes that comes when the time is over, or the process ends, in milliseconds. */
const REFUSED_AFTER_MS = 100;

/**
 * The time of one call of the own logic. It stands still while a call of the service is under way: that may have to wait
 * for the limit for minutes, and has an end of its own. But it is over as well when calls have failed for long, one after
 * the other, when work and calls together have taken very long, and soon after the process has begun to end.
 */
export class OwnLogicTime {
  readonly #limitMs: number;
  readonly #shutdown: AbortSignal;
  readonly #over = Promise.withResolvers<never>();
  #ending: AbortController | undefined;
  /** Wrapped, as anything can be thrown, also undefined. */
  #failure: { error: unknown } | undefined;
  #isRunning = false;
  #leftMs: number;
  #goesOnSince = 0;
  #timer: NodeJS.Timeout | undefined;
  #endingTimer: NodeJS.Timeout | undefined;
  #calls = 0;
  #answeredAt = 0;
  readonly #onLong: (() => void) | undefined;

  /**
   * @param limitMs how long it may take, in milliseconds
   * @param shutdown aborted when the process ends
   * @param onLong told when it takes long, with its calls of the service
   */
  constructor(limitMs: number, shutdown: AbortSignal, onLong?: () => void) {
    this.#onLong = onLong;
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
    this.#shutdown = shutdown;
  }

  /** Aborted when the time is over, the work has failed, or the process ends. Made when it is asked for: most pages need none. */
  get signal(): AbortSignal {
    if (this.#ending === undefined) {
      this.#ending = new AbortController();
      if (this.#failure !== undefined) this.#ending.abort(this.#failure.error);
      else if (this.#shutdown.aborted) this.#ending.abort(this.#shutdown.reason);
    }
    return this.#ending.signal;
  }

  /**
   * Passed on by a listener that goes with the work: a signal that depended on that of the process would be kept as long
   * as it, with whatever the own logic has hung on it, and would end at last what was done long ago.
   */
  readonly #shutDown = (): void => {
    const { reason } = this.#shutdown;
    this.#ending?.abort(reason);
    this.#endingTimer = setTimeout(() => this.#endWith(reason), ENDING_MS);
  };

  /**
   * Runs the own logic. What has taken too long is left to itself: it cannot be stopped if it does not heed the signal.
   *
   * @throws OwnLogicTimeout when it is over; what the work throws; the reason of the shutdown when it does not end with the
   *   process
   */
  async limit(work: () => Promise<void>): Promise<void> {
    this.#isRunning = true;
    this.#answeredAt = performance.now();
    this.#goOn();
    if (this.#shutdown.aborted) this.#shutDown();
    else this.#shutdown.addEventListener('abort', this.#shutDown);
    const longTimer = setTimeout(() => this.#onLong?.(), TOLD_AFTER_MS);
    const totalMs = this.#limitMs + LONGEST_CALLS_MS;
    const totalTimer = setTimeout(() => {
      this.#end(
        `It was not done after ${Math.round(totalMs / 60_000)} minutes, its calls of the service included: it has to make fewer of them for a batch, or to end by itself if it waits for something. A higher OWN_LOGIC_TIMEOUT_SECONDS gives it as much more.`,
      );
    }, totalMs);
    try {
      await Promise.race([work(), this.#over.promise]);
    } catch (error) {
      // Whatever else it has begun is of a try that has failed: the next one begins it anew.
      this.#failure ??= { error };
      this.#ending?.abort(error);
      throw error;
    } finally {
      this.#stand();
      clearTimeout(longTimer);
      clearTimeout(totalTimer);
      clearTimeout(this.#endingTimer);
      this.#shutdown.removeEventListener('abort', this.#shutDown);
      this.#isRunning = false;
    }
  }

  /** Sees a call of the service through, whose time does not count. */
  readonly around = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (this.#calls++ === 0) this.#stand();
    try {
      const answer = await call();
      this.#answeredAt = performance.now();
      return answer;
    } catch (error) {
      this.#failed(error);
      // Where the own logic heeds no error and calls on and on, nobody else would have a turn.
      if (this.#failure !== undefined || this.#shutdown.aborted) await sleep(REFUSED_AFTER_MS);
      else await othersTurn();
      throw error;
    } finally {
      if (--this.#calls === 0) this.#goOn();
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
    if (!this.#isRunning || this.#failure !== undefined) return;
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
    this.#endWith(new OwnLogicTimeout(reason));
  }

  #endWith(error: unknown): void {
    if (!this.#isRunning || this.#failure !== undefined) return;
    this.#failure = { error };
    this.#over.reject(error);
  }
}
