import type { LoopLoad } from './loop-load.ts';

/** Runs with so many pages or more are alike: none of them is small. */
const LARGE_PAGES = 128;

/** How many may be inside at first, and at least. */
const FIRST_MOST = 64;
const LEAST_MOST = 16;

/** The event loop is busy, and who comes newly does not wait long: what the bound aims at. */
const AIM = { utilization: 0.95, lateMs: 8 } as const;

/** Pages that the process keeps in memory until they are written: own logic may take minutes for each. */
const MOST_KEPT = 1_000;

/** By how much the gate opens or closes at a time. */
const STEP = 0.05;

interface Waiter {
  enter(): void;
  isGone: boolean;
}

/**
 * Bounds how many pages a process asks for at the same time. More than the processor keeps up with would make every
 * page slower, those of a small company that installs now as well; with a slow service, many must be under way to keep
 * it busy. So the bound follows how late the event loop is.
 *
 * When it is full, the run with the fewest pages goes first: all of them get an even share, and a new one is
 * soon as far as the others.
 */
export class PageGate {
  readonly #queues: Waiter[][] = Array.from({ length: LARGE_PAGES + 1 }, () => []);
  #waiting = 0;
  #inside = 0;
  #kept = 0;
  #most = FIRST_MOST;
  #wasFull = false;

  /** Takes a place, if one is free and nobody waits. */
  tryEnter(): boolean {
    const isFree = this.#isOpen && this.#waiting === 0;
    if (isFree) this.#inside++;
    else this.#wasFull = true;
    return isFree;
  }

  /**
   * Waits for a place.
   *
   * @param pages how many pages the run has
   * @throws the signal's reason when it is aborted first
   */
  async enter(pages: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.tryEnter()) return;
    const queue = this.#queues[Math.min(pages, LARGE_PAGES)] ?? [];
    await new Promise<void>((resolve, reject) => {
      const leaveQueue = () => {
        waiter.isGone = true;
        this.#waiting--;
        reject(signal.reason);
      };
      const waiter = {
        isGone: false,
        enter: () => {
          signal.removeEventListener('abort', leaveQueue);
          resolve();
        },
      };
      signal.addEventListener('abort', leaveQueue, { once: true });
      queue.push(waiter);
      this.#waiting++;
    });
  }

  /** Notes that a page was read, until {@link written}. */
  keep(): void {
    this.#kept++;
  }

  /** A page that was read is written, or dropped. */
  written(): void {
    this.#kept--;
    this.#admit();
  }

  /** Gives a place back. */
  leave(): void {
    this.#inside--;
    this.#admit();
  }

  /** Opens or closes the gate by a step, after what the event loop did of late. */
  adjust({ lateMs, utilization }: LoopLoad): void {
    const isBusy = utilization >= AIM.utilization;
    if (isBusy && lateMs > AIM.lateMs) this.#most = Math.max(LEAST_MOST, Math.floor(this.#most * (1 - STEP)));
    else if (!isBusy && this.#wasFull) this.#most = Math.ceil(this.#most * (1 + STEP));
    this.#wasFull = this.#waiting > 0;
    this.#admit();
  }

  get #isOpen(): boolean {
    return this.#inside < this.#most && this.#kept < MOST_KEPT;
  }

  #admit(): void {
    while (this.#isOpen && this.#waiting > 0) {
      const next = this.#next();
      this.#waiting--;
      this.#inside++;
      next.enter();
    }
  }

  #next(): Waiter {
    for (const queue of this.#queues) {
      for (let waiter = queue.shift(); waiter !== undefined; waiter = queue.shift()) {
        if (!waiter.isGone) return waiter;
      }
    }
    throw new Error('The gate lost count of who waits.');
  }
}
