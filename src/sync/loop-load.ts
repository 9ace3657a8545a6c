import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

const SAMPLE_EVERY_MS = 10;
const TELL_EVERY_MS = 100;

/** How the event loop did of late. */
export interface LoopLoad {
  /** How late it is when something becomes due, in milliseconds: the median, as a pause of the machine says nothing. */
  lateMs: number;
  /** The share of the time in which it had something to do, up to 1. */
  utilization: number;
}

/**
 * Tells every tenth of a second how much the event loop has to do.
 *
 * @returns a function that ends it
 */
export function watchLoopLoad(tell: (load: LoopLoad) => void): () => void {
  const delays = monitorEventLoopDelay({ resolution: SAMPLE_EVERY_MS });
  delays.enable();
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    // What is measured are the times between two samples, in nanoseconds.
    const lateMs = delays.count > 0 ? Math.max(0, delays.percentile(50) / 1e6 - SAMPLE_EVERY_MS) : 0;
    delays.reset();
    tell({ lateMs, utilization });
  }, TELL_EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    delays.disable();
  };
}
