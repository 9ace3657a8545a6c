interface Event {
  at: number;
  order: number;
  run: () => void | Promise<void>;
}

/** What happens when, in a time of its own: nothing waits in earnest. */
export class EventQueue {
  /** Milliseconds since the start. */
  now = 0;
  steps = 0;
  readonly #heap: Event[] = [];

  add(inMs: number, run: Event['run']): void {
    const heap = this.#heap;
    const event = { at: this.now + Math.max(0, inMs), order: this.steps++, run };
    let index = heap.push(event) - 1;
    for (
      let parent = (index - 1) >> 1;
      index > 0 && isBefore(event, heap[parent]);
      parent = (index - 1) >> 1
    ) {
      heap[index] = heap[parent] as Event;
      index = parent;
    }
    heap[index] = event;
  }

  async run(untilMs: number): Promise<void> {
    for (let event = this.#take(); event !== undefined && event.at <= untilMs; event = this.#take()) {
      this.now = event.at;
      const going = event.run();
      if (going !== undefined) await going;
    }
  }

  #take(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child])) child++;
      const least = heap[child];
      if (least === undefined || !isBefore(least, last)) break;
      heap[index] = least;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(one: Event, other: Event | undefined): boolean {
  return other !== undefined && (one.at < other.at || (one.at === other.at && one.order < other.order));
}
