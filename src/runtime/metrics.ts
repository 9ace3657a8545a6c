import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

/** From a local answer to the longest that a request may take, in seconds. */
const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * Creates the metrics of one process in a registry of their own: nothing is global.
 * Labels take few values, never an id of an instance, a company or a record.
 *
 * @returns the registry (`registry.metrics()` is the text for Prometheus, `registry.contentType` its type) and the metrics
 */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  return {
    registry,
    /** Requests to the service; outcome: the status (`200`, `429`), or `no_answer`. */
    serviceRequests: new Counter({
      name: 'service_requests_total',
      help: 'Requests to the service, by outcome.',
      labelNames: ['route', 'outcome'] as const,
      registers,
    }),
    /** How long the service took to answer, in seconds. */
    serviceRequestSeconds: new Histogram({
      name: 'service_request_duration_seconds',
      help: 'Time until the service had answered.',
      labelNames: ['route'] as const,
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    /** Pages whose records have been stored. */
    pages: new Counter({
      name: 'sync_pages_total',
      help: 'Pages stored.',
      labelNames: ['resource'] as const,
      registers,
    }),
    /** Records in the pages that have been stored. */
    records: new Counter({
      name: 'sync_records_total',
      help: 'Records in the pages stored.',
      labelNames: ['resource'] as const,
      registers,
    }),
    /** Runs that came to an end; outcome: `finished` or `failed`. */
    runs: new Counter({
      name: 'sync_runs_total',
      help: 'Runs that came to an end, by outcome.',
      labelNames: ['resource', 'outcome'] as const,
      registers,
    }),
    /** Requests for new tokens; outcome: `refreshed`, `rotated`, `failed`, or `rejected` when the grant is over. */
    tokenRefreshes: new Counter({
      name: 'token_refreshes_total',
      help: 'Token refreshes, by outcome.',
      labelNames: ['outcome'] as const,
      registers,
    }),
    /** Requests to the web app in seconds; route is the pattern, not the path. */
    httpRequestSeconds: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Requests to the web app.',
      labelNames: ['method', 'route', 'status'] as const,
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
  };
}
