/** A window of the limit as the service counts it. */
export interface CountedWindow {
  /** Of its first request, in milliseconds. */
  startedAt: number;
  requests: number;
}

/**
 * The windows of one company, from the moments of its requests in their order: a window begins with the first request
 * after the one before has ended.
 */
export function windowsOf(times: readonly number[], windowMs: number): CountedWindow[] {
  const windows: CountedWindow[] = [];
  for (const at of times) {
    const last = windows.at(-1);
    if (last === undefined || at >= last.startedAt + windowMs) windows.push({ startedAt: at, requests: 1 });
    else last.requests += 1;
  }
  return windows;
}

/**
 * Which share of what the limit allowed was used, from the first window's begin to that of the last one; what was lost
 * between the end of a window and the begin of the next counts, too.
 *
 * @param limit requests a window
 * @returns undefined with fewer than two windows
 */
export function shareOfLimit(
  windows: readonly CountedWindow[],
  limit: number,
  windowMs: number,
): number | undefined {
  const [first, last] = [windows[0], windows.at(-1)];
  if (first === undefined || last === undefined || first === last) return undefined;
  const requests = windows.slice(0, -1).reduce((sum, window) => sum + window.requests, 0);
  return requests / ((limit * (last.startedAt - first.startedAt)) / windowMs);
}
