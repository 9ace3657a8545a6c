import { performance } from 'node:perf_hooks';
import type { Logger } from '../runtime/logging.ts';

/** Looks at the time that a call of the own logic takes. @returns a function that warns that its run was lost meanwhile */
export function watchForLoss(logger: Logger): () => void {
  const begunAt = performance.now();
  const loop = performance.eventLoopUtilization();
  return () => {
    const ms = Math.round(performance.now() - begunAt);
    const busyMs = Math.round(performance.eventLoopUtilization(loop).active);
    logger.warn({ ms, busyMs }, 'another worker has taken the run over while the own logic was at work');
  };
}
