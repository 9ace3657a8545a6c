import type { Redis } from 'ioredis';

/** By so much more than the time that has passed a clock may go ahead without having been set, in milliseconds. */
const STEP_MS = 100;

/** How long what is known of the clocks is compared with, in milliseconds: small steps add up, and clocks drift. */
const COMPARED_MS = 60_000;

/** What was known when Redis was asked. */
interface Begun {
  /** By the steady clock, in milliseconds. */
  readonly at: number;
  /** The gaps until then. */
  readonly gaps: number;
}

/**
 * Watches for what may leave a gap in what Redis has counted, and Redis itself cannot tell: a new connection may lead to
 * a server that was started again, or took over, with less than this one had; and a clock that is set forward ends what
 * is not over. The begin of a process counts as one, too: a whole machine may have been started again.
 */
export class CountWatch {
  readonly #steadyNow: () => number;
  #gaps = 0;
  #gapAt: number;
  /** By how much Redis' clock was ahead of the steady one at the most, as the quickest answer of late shows. */
  #ahead = Number.POSITIVE_INFINITY;
  #aheadAt = Number.NEGATIVE_INFINITY;

  /** @param steadyNow a clock that nobody sets, in milliseconds */
  constructor(redis: Pick<Redis, 'on' | 'time'>, steadyNow = () => performance.now()) {
    this.#steadyNow = steadyNow;
    this.#gapAt = steadyNow();
    // Who asks for nothing for days could not tell its first answer from one after a step otherwise.
    const look = () => {
      const begun = this.begin();
      redis.time().then(
        ([seconds, micros]) => this.isUnbroken(begun, Number(seconds) * 1_000 + Number(micros) / 1_000),
        // The next answer tells.
        () => undefined,
      );
    };
    look();
    redis.on('ready', () => {
      this.#noteGap();
      look();
    });
  }

  /** How long ago the last gap may have been, in milliseconds. */
  get gapAgoMs(): number {
    return Math.round(this.#steadyNow() - this.#gapAt);
  }

  /** To be asked before Redis is. */
  begin(): Begun {
    return { at: this.#steadyNow(), gaps: this.#gaps };
  }

  /**
   * To be told of each answer.
   *
   * @param clockMs Redis' clock in it
   * @returns false when there was a gap since Redis was asked, of which its script was not told
   */
  isUnbroken({ at, gaps }: Begun, clockMs: number): boolean {
    const now = this.#steadyNow();
    // An answer that comes late, or was waited for, shows less: neither is taken for a step.
    const isStep = clockMs - now > this.#ahead + STEP_MS;
    if (isStep) this.#noteGap();
    if (isStep || clockMs - at < this.#ahead || now - this.#aheadAt > COMPARED_MS) {
      this.#ahead = clockMs - at;
      this.#aheadAt = now;
    }
    return gaps === this.#gaps;
  }

  #noteGap(): void {
    this.#gaps++;
    this.#gapAt = this.#steadyNow();
  }
}
