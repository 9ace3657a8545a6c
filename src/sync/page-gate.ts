import type { AnswerMemory } from '../client/answer-memory.ts';
import { FewestFirst } from './fewest-first.ts';
import type { WriteTurns } from './write-turns.ts';

/** How many may be under way at first, and at least: some ten megabytes. */
const FEW = 64;

/** From this share of its time on, the event loop is as busy as it can be. */
const BUSY = 0.95;

/** By how much the gate opens or closes at a time. */
const STEP = 0.05;

/**
 * Bounds how many pages a process has under way, from the request to its turn to be written. With a slow service many
 * must be under way to keep the processor busy; with a quick one they would only wait to be written, in memory. So the
 * bound grows while it keeps the process from its work, and shrinks while most of the pages wait to be written. Pages that
 * were read stay in memory until they are written, for which own logic may take minutes: by their size it is full, too.
 *
 * When it is full, the run with the fewest pages goes first.
 */
export class PageGate {
  readonly #toWrite: Pick<WriteTurns, 'waiting'>;
  readonly #memory: AnswerMemory;
  readonly #waiting = new FewestFirst<() => void>();
  #inside = 0;
  #most = FEW;
  #wasFull = false;

  /**
   * @param toWrite the pages of the process that were read, and are not written yet
   * @param memory where all that the process has read is counted
   */
  constructor(toWrite: Pick<WriteTurns, 'waiting'>, memory: AnswerMemory) {
    this.#toWrite = toWrite;
    this.#memory = memory;
  }

  /** Takes a place, if one is free and nobody waits. */
  tryEnter(): boolean {
    const isFree = this.#isOpen && this.#waiting.length === 0;
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
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', leaveQueue);
        resolve();
      };
      const leaveQueue = () => {
        this.#waiting.remove(pages, enter);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leaveQueue, { once: true });
      this.#waiting.push(pages, enter);
    });
  }

  /** Notes that a page of so many bytes was read, until {@link written}. */
  keep(bytes: number): void {
    this.#memory.take(bytes);
  }

  /** A page that was read is written, or dropped. */
  written(bytes: number): void {
    this.#memory.give(bytes);
    this.#admit();
  }

  /** Gives a place back. */
  leave(): void {
    this.#inside--;
    this.#admit();
  }

  /**
   * Opens or closes the gate by a step.
   *
   * @param utilization the share of the time in which the event loop had something to do of late, up to 1
   */
  adjust(utilization: number): void {
    const isBusy = utilization >= BUSY;
    const isLate = this.#toWrite.waiting > this.#most / 2;
    if (isBusy && isLate) this.#most = Math.max(FEW, Math.floor(this.#most * (1 - STEP)));
    else if (!isBusy && this.#wasFull && !this.#memory.isFull)
      this.#most = Math.ceil(this.#most * (1 + STEP));
    this.#wasFull = this.#waiting.length > 0;
    this.#admit();
  }

  get #isOpen(): boolean {
    return this.#inside + this.#toWrite.waiting < this.#most && !this.#memory.isFull;
  }

  #admit(): void {
    while (this.#isOpen && this.#waiting.length > 0) {
      this.#inside++;
      this.#waiting.shift()?.();
    }
  }
}
