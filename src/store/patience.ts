/** How long it is waited for a lock that has worn out somebody's patience before, in milliseconds. */
const WORN_OUT_MS = 100;

/**
 * How long writes wait for another process's write. One that waited in vain tells the others, until one gets through:
 * a lock that stays for minutes costs the first its time, and not, one behind the other, everybody else.
 */
export class Patience {
  readonly #fullMs: number;
  #isWornOut = false;

  /** @param fullMs in milliseconds */
  constructor(fullMs: number) {
    this.#fullMs = fullMs;
  }

  /** In milliseconds, for a write that begins now. */
  get ms(): number {
    return this.#isWornOut ? WORN_OUT_MS : this.#fullMs;
  }

  wearOut(): void {
    this.#isWornOut = true;
  }

  renew(): void {
    this.#isWornOut = false;
  }
}
