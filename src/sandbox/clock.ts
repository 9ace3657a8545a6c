/** The latest moment that the clock takes, in ms since 1970: `Date` headers have four digits for the year. */
export const CLOCK_MAX_MS = Date.UTC(9000, 0, 1);

/**
 * The service's one clock, in milliseconds since 1970. Everything that depends on time reads it: token and code
 * lifetimes, rate windows, bursts and the `Date` header. It runs with real time until it is frozen.
 */
export class Clock {
  readonly #start: number | undefined;
  #offset = 0;
  #frozenAt: number | undefined;

  /** @param start where the clock starts, in ms since 1970; real time when left out */
  constructor(start?: number) {
    this.#start = start;
    this.reset();
  }

  get frozen(): boolean {
    return this.#frozenAt !== undefined;
  }

  /** The service's now, in whole milliseconds since 1970. */
  now(): number {
    return this.#frozenAt ?? Date.now() + this.#offset;
  }

  /** Moves to a moment, in ms since 1970, forwards or back; a frozen clock stays frozen there. */
  set(epochMs: number): void {
    if (this.#frozenAt === undefined) this.#offset = epochMs - Date.now();
    else this.#frozenAt = epochMs;
  }

  /** Stops the clock, or lets it run on from where it stands. */
  freeze(frozen: boolean): void {
    const now = this.now();
    this.#frozenAt = frozen ? now : undefined;
    if (!frozen) this.#offset = now - Date.now();
  }

  /** Back to the start: running, at the moment given to the constructor or at real time. */
  reset(): void {
    this.#frozenAt = undefined;
    this.#offset = this.#start === undefined ? 0 : this.#start - Date.now();
  }
}
