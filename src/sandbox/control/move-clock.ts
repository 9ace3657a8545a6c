import { CLOCK_MAX_MS, type Clock } from '../clock.ts';
import { Problem } from '../http/answer.ts';

/** What `POST /_sandbox/clock` takes; `set` in ms since 1970. */
export interface ClockMove {
  advance_ms?: number | undefined;
  set?: number | undefined;
  frozen?: boolean | undefined;
}

/**
 * Freezes or unfreezes the clock, sets it, and then moves it on, whichever is asked for.
 * Throws a {@link Problem} (400) when it would leave the range of the clock.
 */
export function moveClock(clock: Clock, { advance_ms = 0, set, frozen }: ClockMove) {
  const target = (set ?? clock.now()) + advance_ms;
  if (target > CLOCK_MAX_MS) {
    throw new Problem(400, `The clock goes no further than ${new Date(CLOCK_MAX_MS).toISOString()}.`);
  }
  if (frozen !== undefined) clock.freeze(frozen);
  if (set !== undefined || advance_ms > 0) clock.set(target);
  return { now: clock.now(), frozen: clock.frozen };
}
