import { setTimeout as sleep } from 'node:timers/promises';
import type { Contender } from './contender.ts';
import { type Counted, requestsOf, windowsOf } from './journal-counts.ts';

/** In the middle of a window: when this share of it is used up, and not yet that. */
const FROM_SHARE = 0.2;
const TO_SHARE = 0.8;
const RESTART_LIMIT_MS = 20_000;
/** The first window that opens during the work. */
const KILL_IN_WINDOW = 1;

/** Kills every contender once, each in the middle of its window. */
export class Killer {
  readonly #waiting: Set<Contender>;
  readonly #windowMs: number;
  readonly #limit: number;
  readonly #restarts: Promise<void>[] = [];
  /** Those that were killed and are not up again. */
  readonly #down = new Set<string>();

  constructor(contenders: readonly Contender[], windowMs: number, limit: number) {
    this.#waiting = new Set(contenders);
    this.#windowMs = windowMs;
    this.#limit = limit;
  }

  /** @param rows of the journal since the work began */
  look(rows: readonly Counted[]): void {
    for (const contender of this.#waiting) {
      // Of several companies the middle one says when: the others are then at other points of their windows.
      const track = contender.tracks[Math.floor(contender.tracks.length / 2)];
      if (track === undefined) continue;
      const windows = windowsOf(requestsOf(rows, track.company.id), this.#windowMs);
      const window = windows[KILL_IN_WINDOW];
      const used = (window?.counted ?? 0) / this.#limit;
      if (used < FROM_SHARE || used > TO_SHARE) continue;
      this.#waiting.delete(contender);
      this.#down.add(contender.label);
      this.#restarts.push(contender.killAndRestart().then(() => void this.#down.delete(contender.label)));
    }
  }

  /** Throws when one was not killed, or did not come up again. */
  async done(): Promise<void> {
    const late = sleep(RESTART_LIMIT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`not up again: ${[...this.#down].join(', ')}`);
    });
    await Promise.race([Promise.all(this.#restarts), late]);
    if (this.#waiting.size > 0) {
      throw new Error(`not killed: ${[...this.#waiting].map(({ label }) => label).join(', ')}`);
    }
  }
}
