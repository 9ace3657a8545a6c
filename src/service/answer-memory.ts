const MEGABYTE = 1024 * 1024;

/** An answer is small up to so many bytes: it is read whatever else there is. A page of 100 records is far below. */
export const SMALL_BYTES = 256 * 1024;

/** What a process keeps at the same time, in bytes: of large answers, and of all until it asks for no more pages. */
const LIMITS = { large: 128 * MEGABYTE, all: 512 * MEGABYTE } as const;

/** A large answer that waits for room. */
export interface LargeAnswer {
  /** How many it may come to in all: more than a small one. */
  bytes: number;
  /** It has them now. */
  goOn(): void;
}

/**
 * Counts the bytes of answers that a process has in memory: while they are read, and as pages until they are written.
 *
 * A large one is read on when there is room for all that it may come to, first come first served: so none waits half read
 * for room that another one half read takes up. Large and small ones do not wait for each other's room: a handler that
 * holds up large pages holds up no small ones.
 */
export class AnswerMemory {
  readonly #limits: { large: number; all: number };
  readonly #waiting = new Set<LargeAnswer>();
  #all = 0;
  #large = 0;
  #isLooking = false;

  constructor(limits: { large: number; all: number } = LIMITS) {
    this.#limits = limits;
  }

  /** How many there are. */
  get bytes(): number {
    return this.#all;
  }

  /** Whether no more pages are to be asked for. */
  get isFull(): boolean {
    return this.#all >= this.#limits.all;
  }

  /** Notes an answer of so many bytes, or a part of a small one. */
  take(bytes: number): void {
    this.#all += bytes;
    if (bytes > SMALL_BYTES) this.#large += bytes;
  }

  /**
   * Gives back what was taken for an answer. Who waits for it gets it in the event loop's next turn: by then a page that was
   * read is noted anew.
   */
  give(bytes: number): void {
    this.#all -= bytes;
    if (bytes > SMALL_BYTES) this.#large -= bytes;
    if (this.#waiting.size === 0 || this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(this.#look);
  }

  /** @returns whether it has its room at once; else it waits, and is told */
  enter(answer: LargeAnswer): boolean {
    if (this.#waiting.size === 0 && this.#takeFor(answer)) return true;
    this.#waiting.add(answer);
    return false;
  }

  /** It waits no longer. */
  leave(answer: LargeAnswer): void {
    // Those behind it may want less.
    if (this.#waiting.delete(answer)) this.give(0);
  }

  #takeFor({ bytes }: LargeAnswer): boolean {
    if (this.#large + bytes > this.#limits.large) return false;
    this.take(bytes);
    return true;
  }

  readonly #look = (): void => {
    this.#isLooking = false;
    for (const answer of this.#waiting) {
      if (!this.#takeFor(answer)) return;
      this.#waiting.delete(answer);
      answer.goOn();
    }
  };
}
