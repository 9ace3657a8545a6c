import type { createMetrics } from '../metrics.ts';

/** What an answer of the service, or its absence, is counted by; status 0 is none. */
interface Outcome {
  route: string;
  status: number;
  durationMs: number;
  refusedBy?: 'limit' | 'guard';
}

/** Counts the requests to the service, and what is left of its limits. */
export function countRequests(metrics: ReturnType<typeof createMetrics>) {
  return {
    onOutcome({ route, status, durationMs, refusedBy }: Outcome): void {
      metrics.serviceRequests.inc({ route, outcome: status === 0 ? 'no_answer' : String(status) });
      metrics.serviceRequestSeconds.observe({ route }, durationMs / 1_000);
      if (refusedBy !== undefined) metrics.serviceRefusals.inc({ route, by: refusedBy });
    },
    onRate({ limit, remaining }: { limit: number; remaining: number }): void {
      metrics.limitLeft.observe(remaining / limit);
    },
  };
}
