import { performance } from 'node:perf_hooks';

const TELL_EVERY_MS = 100;

/**
 * Tells every tenth of a second how much the event loop had to do: the share of the time, up to 1.
 *
 * @returns a function that ends it
 */
export function watchLoopLoad(tell: (utilization: number) => void): () => void {
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    tell(utilization);
  }, TELL_EVERY_MS).unref();
  return () => clearInterval(timer);
}
