/** How often the time is looked at, in milliseconds, where there is enough of it. */
const TICK_MS = 500;

/** The least number of looks. */
const LEAST_TICKS = 10;

/** A limit of time, and its end. */
interface RunningTimeout {
  signal: AbortSignal;
  /** To be called when it is not needed any more. */
  end(): void;
}

/**
 * A limit of time in which this process runs. While it is stopped (`SIGSTOP`, a frozen container), or its event loop is
 * blocked, what it waits for may have come: that is read first, before the time is over.
 *
 * @param ms in milliseconds
 * @returns a signal that is aborted then with a `TimeoutError`
 */
export function runningTimeout(ms: number): RunningTimeout {
  const tickMs = Math.min(TICK_MS, ms / LEAST_TICKS);
  const over = new AbortController();
  let leftMs = ms;
  let lookedAt = performance.now();
  const timer = setInterval(() => {
    const passedMs = performance.now() - lookedAt;
    lookedAt += passedMs;
    const isLate = passedMs > 2 * tickMs;
    leftMs -= isLate ? tickMs : passedMs;
    if (isLate || leftMs > 0) return;
    clearInterval(timer);
    over.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  }, tickMs).unref();
  return { signal: over.signal, end: () => clearInterval(timer) };
}
