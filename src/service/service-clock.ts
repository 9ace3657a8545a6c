import { parseHttpDate } from './http-date.ts';

/** HTTP dates have whole seconds: a difference within this says nothing, in milliseconds. */
const RESOLUTION_MS = 1_000;

/** The service's time: our own, corrected by what the `Date` of its answers shows. */
export class ServiceClock {
  readonly #localNow: () => number;
  #offsetMs = 0;

  /** @param localNow our own clock, in milliseconds since 1970 */
  constructor(localNow: () => number = Date.now) {
    this.#localNow = localNow;
  }

  /** The service's time now, in milliseconds since 1970. */
  now(): number {
    return this.#localNow() + this.#offsetMs;
  }

  /** Learns from the `Date` header of an answer that has just arrived. */
  observe(date: string | undefined | null): void {
    const at = parseHttpDate(date);
    if (Number.isNaN(at)) return;
    // The header was cut to whole seconds, so the truth lies in [at, at + 1 s): keep what we have if it fits.
    const difference = this.now() - at;
    if (difference < 0 || difference > RESOLUTION_MS)
      this.#offsetMs = at + RESOLUTION_MS / 2 - this.#localNow();
  }
}
