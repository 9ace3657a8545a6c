/** Requests counted in a fixed window, which starts with its first one (ms since 1970); plain data. */
export interface Counted {
  start: number;
  used: number;
}

/**
 * The window, if it is open at that moment. A clock that was set back before its start ends it, too: else the reset
 * would be too far ahead.
 */
export function openWindow<C extends Counted>(
  counted: C | undefined,
  lengthMs: number,
  now: number,
): C | undefined {
  return counted !== undefined && now >= counted.start && now < counted.start + lengthMs
    ? counted
    : undefined;
}

/** The window with one more request, or a new one. */
export function countOne(counted: Counted | undefined, lengthMs: number, now: number): Counted {
  const open = openWindow(counted, lengthMs, now);
  return open === undefined ? { start: now, used: 1 } : { start: open.start, used: open.used + 1 };
}
