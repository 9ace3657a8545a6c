/** Runs with so many pages or more are alike: none of them is small. */
const LARGE_PAGES = 128;

/**
 * Who waits for something that a process has little of, by the pages that its run has: the fewest first, and first come
 * first served among equals. So all runs get an even share, and a new one is soon as far as the others.
 */
export class FewestFirst<Waiter> {
  readonly #queues: Waiter[][] = Array.from({ length: LARGE_PAGES + 1 }, () => []);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param pages how many pages the run has */
  push(pages: number, waiter: Waiter): void {
    this.#queues[Math.min(pages, LARGE_PAGES)]?.push(waiter);
    this.#length++;
  }

  /** Takes the next one out. */
  shift(): Waiter | undefined {
    if (this.#length === 0) return undefined;
    this.#length--;
    return this.#queues.find((queue) => queue.length > 0)?.shift();
  }

  /** Takes one out that waits no longer. */
  remove(pages: number, waiter: Waiter): void {
    const queue = this.#queues[Math.min(pages, LARGE_PAGES)] ?? [];
    const place = queue.indexOf(waiter);
    if (place < 0) return;
    queue.splice(place, 1);
    this.#length--;
  }
}
