import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceError } from '../errors.ts';

/** What is left of the time that a call may wait. */
export class Patience {
  #leftMs: number;
  readonly #signal: AbortSignal | undefined;

  /**
   * @param maxWaitMs the longest that all waits together may take, in milliseconds
   * @param signal ends a wait early
   */
  constructor(maxWaitMs: number, signal: AbortSignal | undefined) {
    this.#leftMs = maxWaitMs;
    this.#signal = signal;
  }

  /**
   * Waits, or does not even begin to when it would take too long.
   *
   * @throws the error that `tooLong` makes; or the signal's AbortError
   */
  async wait(ms: number, tooLong: () => ServiceError): Promise<void> {
    this.allow(ms, tooLong);
    this.#leftMs -= ms;
    await sleep(ms, undefined, this.#signal === undefined ? {} : { signal: this.#signal });
  }

  /** Throws the error that `tooLong` makes when so many milliseconds are more than is left. */
  allow(ms: number, tooLong: () => ServiceError): void {
    if (ms > this.#leftMs) throw tooLong();
  }
}
