import { parseHttpDate } from './http-date.ts';

/** HTTP dates have whole seconds: a difference within this says nothing, in milliseconds. */
const RESOLUTION_MS = 1_000;

/** A local clock that went by so much more or less than time did was set, or the machine slept, in milliseconds. */
const STEP_MS = 1_000;

/**
 * Two who tell the time say the same if they differ by no more than this, in milliseconds. It is well under the margin
 * by which a token is renewed before its end.
 */
const AGREE_MS = 60_000;

/** The end of the year 9999: an HTTP date has four digits for the year. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59);

/**
 * The time of one host of the service, as far as we know: our own, corrected by the difference that its answers show.
 * Lifetimes are the service's, and our clock may be wrong by minutes, or be set at any moment.
 *
 * Nothing says that two hosts have the same time: what the token route tells is read with a clock that has only heard
 * the host of the token route, and likewise for the API.
 */
export class ServiceClock {
  readonly #localNow: () => number;
  readonly #steadyNow: () => number;
  #offsetMs = 0;
  #observed: { local: number; steady: number } | undefined;
  /** What our clock would be corrected by if a time were believed that is far from what we have. */
  #doubtedMs: number | undefined;

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

  /** Milliseconds on a clock that nobody sets, since any moment. */
  steady(): number {
    return this.#steadyNow();
  }

  /**
   * Learns from the `Date` header of an answer that has just arrived. A time that does not agree with what we have is
   * believed when the next answer tells it, too: one answer alone may be wrong, as of one machine behind the service's
   * address that is set to another time zone. Until then we go on with what we have, our own clock if there is no more.
   *
   * @returns whether another answer is wanted
   */
  observe(date: string | undefined | null): boolean {
    const at = parseHttpDate(date);
    if (Number.isNaN(at) || at > LATEST) return false;
    const local = this.#localNow();
    const doubted = this.#doubtedMs;
    this.#doubtedMs = this.#mayBe(at) ? undefined : at - local;
    if (this.#doubtedMs !== undefined && !isSame(this.#doubtedMs, doubted)) return true;
    this.#doubtedMs = undefined;
    this.#observed = { local, steady: this.#steadyNow() };
    // The header was cut to whole seconds, so the truth lies in [at, at + 1 s): keep what we have if it fits.
    const difference = local + this.#offsetMs - at;
    if (difference < 0 || difference > RESOLUTION_MS) this.#offsetMs = at + RESOLUTION_MS / 2 - local;
    return false;
  }

  /**
   * Whether a time agrees with what we have. Of a clock that has gone more than time did, nobody knows whether it was set
   * or the machine slept, or both: any time from the one to the other may be.
   */
  #mayBe(at: number): boolean {
    const latest = this.now();
    const earliest = latest - Math.max(0, this.#step() ?? 0);
    return at >= earliest - AGREE_MS && at <= latest + AGREE_MS;
  }

  /** By how much our clock has gone more than time since the last answer, if that is more than clocks differ. */
  #step(): number | undefined {
    if (this.#observed === undefined) return undefined;
    const local = this.#localNow() - this.#observed.local;
    const steady = this.#steadyNow() - this.#observed.steady;
    return Math.abs(local - steady) > STEP_MS ? local - steady : undefined;
  }
}

function isSame(offsetMs: number, other: number | undefined): boolean {
  return other !== undefined && Math.abs(offsetMs - other) <= AGREE_MS;
}
