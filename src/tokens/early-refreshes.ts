/** So many refreshes in a row may come early before the next one is held back. */
const MOST_IN_A_ROW = 3;

/** What half a life counts as at the least, in milliseconds: an end that is told wrong may be very near each time. */
const SHORTEST_HALF_MS = 5_000;

interface Refreshed {
  /** On the steady clock: half of the life that the access token was granted for is over then. */
  halfwayAt: number;
  /** How many refreshes came in the first half of the life that the one before had granted. */
  early: number;
}

/**
 * Keeps clocks that do not agree from renewing an access token again and again. Whoever tells that a token ends may be
 * wrong; how long ago it was granted, this process knows by a clock that nobody sets. A few refreshes may come in the
 * first half of the life that was granted, as a machine may have slept. Then the token is good until that half is over,
 * or until the service rejects it, which is another matter.
 */
export class EarlyRefreshes {
  readonly #steadyNow: () => number;
  readonly #last = new Map<string, Refreshed>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  /** Whether an instance's access token is to be used although it seems to be over. */
  isHeld(instanceId: string): boolean {
    const last = this.#last.get(instanceId);
    return last !== undefined && last.early >= MOST_IN_A_ROW && this.#steadyNow() < last.halfwayAt;
  }

  /**
   * Notes a refresh that was made because the access token seemed to end.
   *
   * @param lifeMs how long the new one is good for, in milliseconds
   */
  note(instanceId: string, lifeMs: number): void {
    const now = this.#steadyNow();
    const { halfwayAt = now, early = 0 } = this.#last.get(instanceId) ?? {};
    const isEarly = now < halfwayAt;
    this.#last.set(instanceId, {
      halfwayAt: now + Math.max(lifeMs / 2, SHORTEST_HALF_MS),
      early: isEarly ? early + 1 : Math.max(0, early - 1),
    });
  }
}
