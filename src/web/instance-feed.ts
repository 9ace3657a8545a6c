import type { InstanceStatus } from '../sync/status-types.ts';
import type { EventStream } from './event-stream.ts';

/** An event for a watcher; it is sent again when its gist changes. */
export interface Presented {
  /** The event's name; without one it is a message like any other. */
  event?: string;
  data: string;
  gist: string;
}

interface FeedOptions {
  read: () => Promise<InstanceStatus | undefined>;
  present: (status: InstanceStatus) => Presented;
  /** What watchers get while the instance cannot be read. */
  outage: Presented;
  intervalMs: number;
  /** Called for the first of several failures in a row. */
  onFailure: (error: unknown) => void;
}

/** Looks at one instance at intervals and sends its watchers what changed. */
export class InstanceFeed {
  readonly #options: FeedOptions;
  /** The gist of what each watcher has got last. */
  readonly #watchers = new Map<EventStream, string>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #lookAgain = false;
  #failing = false;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Adds a watcher, who gets the current state at once. */
  add(watcher: EventStream): void {
    this.#watchers.set(watcher, '');
    void this.#look();
  }

  /** @returns whether nobody watches any more; the feed then stands still */
  remove(watcher: EventStream): boolean {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return false;
    clearTimeout(this.#timer);
    return true;
  }

  async #look(): Promise<void> {
    if (this.#looking) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = true;
    clearTimeout(this.#timer);
    try {
      const status = await this.#options.read();
      if (status) this.#send(this.#options.present(status));
      else this.#sayGone();
      this.#failing = false;
    } catch (error) {
      // The next look may succeed; until then no page goes on as if what it shows were true.
      this.#send(this.#options.outage);
      if (!this.#failing) this.#options.onFailure(error);
      this.#failing = true;
    }
    this.#looking = false;
    if (this.#watchers.size === 0) return;
    const pause = this.#lookAgain ? 0 : this.#options.intervalMs;
    this.#lookAgain = false;
    this.#timer = setTimeout(() => void this.#look(), pause);
  }

  #send({ event, data, gist }: Presented): void {
    const name = event === undefined ? '' : `event: ${event}\n`;
    for (const [watcher, sent] of this.#watchers) {
      // A slow watcher misses states in between, and gets the latest when it has taken in the one before.
      if (sent !== gist && watcher.send(`${name}data: ${data}\n\n`)) this.#watchers.set(watcher, gist);
    }
  }

  #sayGone(): void {
    for (const watcher of this.#watchers.keys()) watcher.end('event: gone\ndata: {}\n\n');
  }
}
