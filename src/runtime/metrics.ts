import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { measureEventLoopDelay } from './metrics/event-loop-delay.ts';
import { addScrapedGauges, type FigureSources } from './metrics/scraped-gauges.ts';

/** From a local answer to the longest that a request may take, in seconds. */
const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Waits for the limit: from none to several windows, in seconds. */
const WAIT_BUCKETS_S = [0.01, 0.05, 0.25, 1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600];

/** Parts of a limit; the first is "used up". */
const PART_BUCKETS = [0, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1];

const REFUSED_BY = ['limit', 'guard'] as const;
const REFRESH_OUTCOMES = ['refreshed', 'rotated', 'failed', 'rejected', 'lost'] as const;

/**
 * Creates the metrics of one process in a registry of their own: nothing is global.
 * Labels take few values, never an id of an instance, a company or a record.
 *
 * @param syncedRoutes what this app asks the service for by itself; other routes come with the handler's calls
 * @param figures where is read what is told when somebody scrapes
 * @returns the registry, `scrape`, which brings the text for Prometheus and its type, the metrics, and `close`, which ends
 *   what measures by itself
 */
export function createMetrics(syncedRoutes: readonly string[], figures: FigureSources) {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'partner_app_' });
  addScrapedGauges(registry, figures);
  const metrics = {
    registry,
    scrape: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
    close: measureEventLoopDelay(registry),
    /** Requests to the service; outcome: the status (`200`, `429`), or `no_answer`. */
    serviceRequests: new Counter({
      name: 'partner_app_service_requests_total',
      help: 'Requests to the service, by outcome.',
      labelNames: ['route', 'outcome'] as const,
      registers,
    }),
    /** 429s; by: the main `limit`, or an additional `guard` of the route (Errors). */
    serviceRefusals: new Counter({
      name: 'partner_app_service_refusals_total',
      help: 'Requests that the service refused with 429, by what refused them.',
      labelNames: ['route', 'by'] as const,
      registers,
    }),
    /** What an answer says is left of its company's limit, as a part of the limit. */
    limitLeft: new Histogram({
      name: 'partner_app_service_limit_left_ratio',
      help: 'What answers say is left of the limit of their company, from 0 (used up) to 1.',
      buckets: PART_BUCKETS,
      registers,
    }),
    /** How long the service took to answer, in seconds. */
    serviceRequestSeconds: new Histogram({
      name: 'partner_app_service_request_duration_seconds',
      help: 'Time until the service had answered.',
      labelNames: ['route'] as const,
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
    /** How long runs waited for each request that the limit granted them, in seconds. */
    slotWaitSeconds: new Histogram({
      name: 'partner_app_sync_slot_wait_seconds',
      help: 'How long a run waited for a request to be granted.',
      buckets: WAIT_BUCKETS_S,
      registers,
    }),
    /** How long jobs of new runs waited for their first place in a worker, in seconds. */
    jobWaitSeconds: new Histogram({
      name: 'partner_app_sync_job_wait_seconds',
      help: 'How long the job of a new run waited for its first place in a worker.',
      buckets: WAIT_BUCKETS_S,
      registers,
    }),
    /** Pages whose records have been stored. */
    pages: new Counter({
      name: 'partner_app_sync_pages_total',
      help: 'Pages stored.',
      labelNames: ['resource'] as const,
      registers,
    }),
    /** Records in the pages that have been stored. */
    records: new Counter({
      name: 'partner_app_sync_records_total',
      help: 'Records in the pages stored.',
      labelNames: ['resource'] as const,
      registers,
    }),
    /** Runs that came to an end; outcome: `finished` or `failed`. */
    runs: new Counter({
      name: 'partner_app_sync_runs_total',
      help: 'Runs that came to an end, by outcome.',
      labelNames: ['resource', 'outcome'] as const,
      registers,
    }),
    /** Requests for new tokens; outcome: one of {@link REFRESH_OUTCOMES}, `rejected` when the grant is over. */
    tokenRefreshes: new Counter({
      name: 'partner_app_token_refreshes_total',
      help: 'Token refreshes, by outcome.',
      labelNames: ['outcome'] as const,
      registers,
    }),
    /** Requests to the web app in seconds; route is the pattern, not the path. */
    httpRequestSeconds: new Histogram({
      name: 'partner_app_http_request_duration_seconds',
      help: 'Requests to the web app.',
      labelNames: ['method', 'route', 'status'] as const,
      buckets: DURATION_BUCKETS_S,
      registers,
    }),
  };
  // A counter that is born with its first event is 1 at once, in which Prometheus sees no increase: trouble is told by these.
  for (const route of syncedRoutes)
    for (const by of REFUSED_BY) metrics.serviceRefusals.inc({ route, by }, 0);
  for (const outcome of REFRESH_OUTCOMES) metrics.tokenRefreshes.inc({ outcome }, 0);
  return metrics;
}
