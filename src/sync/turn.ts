/** A slice whose place others wait for gives way to them after so many pages, or so long. */
const SHORT_TURN = { pages: 25, ms: 5_000 } as const;

/** Any slice gives way after so long: a worker that was started to help gets its share of the runs then. */
const LONG_TURN_MS = 60_000;

/**
 * Begins a slice's turn. To give way costs more than a page: so a slice goes on while nobody waits for its place.
 *
 * @param hasRoom whether the process has places to spare
 * @param now milliseconds since 1970
 * @returns whether the turn is over, after so many pages that were asked for
 */
export function beginTurn(hasRoom: () => boolean, now: () => number): (asked: number) => boolean {
  const begunAt = now();
  return (asked) => {
    // A clock that is set, in whatever direction, ends the turn.
    const ms = Math.abs(now() - begunAt);
    if (ms >= LONG_TURN_MS) return true;
    return (asked >= SHORT_TURN.pages || ms >= SHORT_TURN.ms) && !hasRoom();
  };
}
