import { AUTHORIZATION_CALL_LIMIT } from '../../contract/limits.ts';

/** Calls counted so far; `start` in ms since 1970. */
interface Counted {
  start: number;
  used: number;
}

/** Where the limit of one application's server stands. */
export interface CallReading {
  /** The application's client id. */
  application: string;
  limit: number;
  remaining: number;
  /** ms since 1970 */
  resetAt: number;
}

/**
 * The limit on calls to the servers of applications (Limits, "Other rate limits": 600 a minute). The specification does
 * not say how they are grouped: here each application's server has its own, whatever company the call is for. A window
 * is fixed and starts with its first call; there is no burst.
 */
export class CallLimiter {
  readonly #windowMs: number;
  #counted = new Map<string, Counted>();

  /** @param windowMs length of the window in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): Map<string, Counted> {
    return this.#counted;
  }

  set state(counted: Map<string, Counted>) {
    this.#counted = counted;
  }

  /**
   * Counts a call if it is allowed.
   *
   * @param application the client id
   * @param now ms since 1970
   * @returns 0 when it is, otherwise how long until it is, in milliseconds; then it counts nowhere
   */
  take(application: string, now: number): number {
    const counted = this.#open(application, now);
    if (counted === undefined) this.#counted.set(application, { start: now, used: 1 });
    else if (counted.used < AUTHORIZATION_CALL_LIMIT) counted.used += 1;
    else return counted.start + this.#windowMs - now;
    return 0;
  }

  /** The limits whose window is open. */
  list(now: number): CallReading[] {
    return [...this.#counted.keys()].flatMap((application) => {
      const counted = this.#open(application, now);
      if (counted === undefined) return [];
      const limit = AUTHORIZATION_CALL_LIMIT;
      return { application, limit, remaining: limit - counted.used, resetAt: counted.start + this.#windowMs };
    });
  }

  #open(application: string, now: number): Counted | undefined {
    const counted = this.#counted.get(application);
    const isOpen = counted !== undefined && now >= counted.start && now < counted.start + this.#windowMs;
    return isOpen ? counted : undefined;
  }
}
