import { FewestFirst } from './fewest-first.ts';

/**
 * Has the pages that were read written one after the other, each in a turn of the event loop of its own. Between two of
 * them requests go out, answers are read and timers run: so none of that is later than a page takes, however many
 * pages have come at the same time.
 */
export class WriteTurns {
  readonly #waiting = new FewestFirst<() => void>();

  /** How many pages wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves when it is a page's turn: after what was begun before it was asked for.
   *
   * @param pages how many pages its run has
   */
  next(pages: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.length === 0) setImmediate(this.#turn);
      this.#waiting.push(pages, resolve);
    });
  }

  readonly #turn = (): void => {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#turn);
  };
}
