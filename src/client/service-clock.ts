/** HTTP dates have whole seconds: a difference within this says nothing, in milliseconds. */
const RESOLUTION_MS = 1_000;

/** A local clock that went by so much more or less than time did was set, or the machine slept, in milliseconds. */
const STEP_MS = 1_000;

/**
 * The service's time, as far as we know: our own, corrected by the difference that its answers show. Token
 * lifetimes are the service's, and our clock may be wrong by minutes, or be set at any moment.
 */
export class ServiceClock {
  readonly #localNow: () => number;
  readonly #steadyNow: () => number;
  #offsetMs = 0;
  #observed: { local: number; steady: number } | undefined;

  /**
   * @param localNow our own clock, in milliseconds since 1970
   * @param steadyNow a clock that nobody sets, in milliseconds since any moment; it may stand still while the machine
   *   sleeps
   */
  constructor(localNow: () => number = Date.now, steadyNow: () => number = localNow) {
    this.#localNow = localNow;
    this.#steadyNow = steadyNow;
  }

  /**
   * The service's time now, in milliseconds since 1970. Our clock may be set back: that is left out. Whether it was set
   * forward or the machine slept cannot be told: the later time is taken, by which a token is renewed too early at worst.
   */
  now(): number {
    return this.#localNow() + this.#offsetMs - Math.min(0, this.#step() ?? 0);
  }

  /**
   * How long ago an answer last told the time, in milliseconds; infinite if none has, or our clock was set since then or
   * the machine slept.
   */
  age(): number {
    const step = this.#step();
    if (this.#observed === undefined || step !== undefined) return Number.POSITIVE_INFINITY;
    return this.#localNow() - this.#observed.local;
  }

  /** Learns from the `Date` header of an answer that has just arrived. */
  observe(date: string | undefined | null): void {
    const at = Date.parse(date ?? '');
    if (Number.isNaN(at)) return;
    const local = this.#localNow();
    this.#observed = { local, steady: this.#steadyNow() };
    // The header was cut to whole seconds, so the truth lies in [at, at + 1 s): keep what we have if it fits.
    const difference = local + this.#offsetMs - at;
    if (difference < 0 || difference > RESOLUTION_MS) this.#offsetMs = at + RESOLUTION_MS / 2 - local;
  }

  /** By how much our clock has gone more than time since the last answer, if that is more than clocks differ. */
  #step(): number | undefined {
    if (this.#observed === undefined) return undefined;
    const local = this.#localNow() - this.#observed.local;
    const steady = this.#steadyNow() - this.#observed.steady;
    return Math.abs(local - steady) > STEP_MS ? local - steady : undefined;
  }
}
