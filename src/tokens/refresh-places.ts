/** Refreshes that one process has under way at the same time, but for slow ones. */
const MOST_AT_ONCE = 12;

/**
 * After how long a refresh leaves its place to another, in milliseconds: the token route may hang for some companies, or
 * another process stand still that has their locks, and that is to hold up nobody else.
 */
const SLOW_MS = 2_000;

/**
 * Bounds how many refreshes a process has under way, first come, first served. What it was granted, and has not written
 * yet, is lost when it is killed; and of thousands of companies whose access tokens have ended together, as after an hour
 * without a worker, the answers to all would come before the first of them is written.
 */
export class RefreshPlaces {
  readonly #most: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(most = MOST_AT_ONCE) {
    this.#most = most;
  }

  /**
   * Does the work in a place, and waits for one first.
   *
   * @param signal ends the waiting, not the work
   * @throws the signal's reason, or what the work throws
   */
  async within<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#taken < this.#most) this.#taken++;
    else await this.#queue(signal);
    let isIn = true;
    const leave = () => {
      if (isIn) this.#leave();
      isIn = false;
    };
    const timer = setTimeout(leave, SLOW_MS);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  #queue(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(enter);
    });
  }

  /** The place goes on to who has waited longest. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
