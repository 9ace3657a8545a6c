import { FewestFirst } from './fewest-first.ts';

/**
 * Has the pages that were read parsed and written one after the other, each in a turn of the event loop of its own. Between
 * two of them requests go out, answers are read and timers run: so none of that is later than a page takes, however many
 * pages have come at the same time, or have waited for a lock of the database.
 */
export class WriteTurns {
  readonly #waiting = new FewestFirst<(end: () => void) => void>();
  #isTaken = false;

  /** How many pages wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Works in a page's turn: after what was begun before it was asked for.
   *
   * @param pages how many pages its run has
   * @param work the turn lasts until this is done, or has ended it
   * @returns what that answers
   */
  async within<Done>(pages: number, work: (end: () => void) => Promise<Done>): Promise<Done> {
    const end = await new Promise<() => void>((resolve) => {
      this.#waiting.push(pages, resolve);
      this.#goOn();
    });
    try {
      return await work(end);
    } finally {
      end();
    }
  }

  #goOn(): void {
    if (this.#isTaken || this.#waiting.length === 0) return;
    this.#isTaken = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    let isOver = false;
    this.#waiting.shift()?.(() => {
      if (isOver) return;
      isOver = true;
      this.#isTaken = false;
      this.#goOn();
    });
  };
}
