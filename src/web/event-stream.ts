import type { Response } from 'express';

/** How long a browser waits before it connects again. */
const RECONNECT_MS = 3_000;

/**
 * The answer to one browser, as server-sent events. It is over as soon as the app ends it, though what was sent may take
 * long to leave, or never do so: from then on nothing is written to it.
 */
export class EventStream {
  readonly #res: Response;
  readonly #endMs: number;
  readonly #onOver: () => void;
  #isOver = false;

  /**
   * Begins the answer.
   *
   * @param options.endMs how long its end may take to get to the browser, in milliseconds
   * @param options.onOver called once, when the app has ended it or the browser has gone
   */
  constructor(res: Response, { endMs, onOver }: { endMs: number; onOver: () => void }) {
    this.#res = res;
    this.#endMs = endMs;
    this.#onOver = onOver;
    // `no-transform` and X-Accel-Buffering keep proxies from collecting events before they pass them on.
    res.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    res.write(`retry: ${RECONNECT_MS}\n\n`);
    res.once('close', () => this.#over());
  }

  /** @returns false when it was not sent: the stream is over, or the browser has not taken in yet what came before */
  send(text: string): boolean {
    if (this.#isOver || this.#res.writableNeedDrain) return false;
    this.#res.write(text);
    return true;
  }

  /** Ends it, and breaks it off when the end does not get to the browser in time. */
  end(last = ''): void {
    if (this.#isOver) return;
    this.#over();
    this.#res.end(last);
    const limit = setTimeout(() => this.#res.destroy(), this.#endMs);
    this.#res.once('close', () => clearTimeout(limit));
  }

  /** Breaks it off. */
  breakOff(): void {
    this.#over();
    this.#res.destroy();
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver();
  }
}
