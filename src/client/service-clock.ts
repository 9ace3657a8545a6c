/** HTTP dates have whole seconds: a difference within this says nothing, in milliseconds. */
const RESOLUTION_MS = 1_000;

/**
 * The service's time, as far as we know: our own, corrected by the difference that its answers show. Token
 * lifetimes are the service's, and our clock may be wrong by minutes.
 */
export class ServiceClock {
  readonly #localNow: () => number;
  #offsetMs = 0;
  #observedAt = Number.NEGATIVE_INFINITY;

  /** @param localNow our own clock, in milliseconds since 1970 */
  constructor(localNow: () => number = Date.now) {
    this.#localNow = localNow;
  }

  /** The service's time now, in milliseconds since 1970. */
  now(): number {
    return this.#localNow() + this.#offsetMs;
  }

  /** How long ago an answer last told the time, in milliseconds of our clock; infinite if none has. */
  age(): number {
    return this.#localNow() - this.#observedAt;
  }

  /** Learns from the `Date` header of an answer that has just arrived. */
  observe(date: string | undefined | null): void {
    const at = Date.parse(date ?? '');
    if (Number.isNaN(at)) return;
    const local = this.#localNow();
    this.#observedAt = local;
    // The header was cut to whole seconds, so the truth lies in [at, at + 1 s): keep what we have if it fits.
    const difference = local + this.#offsetMs - at;
    if (difference < 0 || difference > RESOLUTION_MS) this.#offsetMs = at + RESOLUTION_MS / 2 - local;
  }
}
