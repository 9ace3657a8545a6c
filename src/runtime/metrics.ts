import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { within } from './readiness.ts';

/** From a local answer to the longest request, in seconds. */
const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** From no wait to several windows, in seconds. */
const WAIT_BUCKETS_S = [0.01, 0.05, 0.25, 1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600];

/** A scrape leaves out figures that take longer. */
const SCRAPE_LIMIT_MS = 1_000;

/** Where counting takes longer, a scrape shows the figures before, unless they are too old. In milliseconds. */
const COUNTING_MS = 150;

/** The pause after such a count, in times of its length: many processes count the same database. */
const REST = 20;
const OLDEST_MS = 5 * 60_000;

const PREFIX = 'partner_app_';
const REFUSED_BY = ['limit', 'guard'] as const;
const CHECK_OUTCOMES = ['unchanged', 'changed', 'ran_out', 'failed'] as const;
const WRITE_OUTCOMES = ['done', 'pending', 'refused', 'unknown'] as const;
const REFRESH_OUTCOMES = ['refreshed', 'rotated', 'failed', 'rejected', 'lost'] as const;

type Gauges = Record<string, readonly [help: string, label?: string]>;

/** Gauges of the database, equal in all processes: the help text, and the label if there are several values. */
const OF_STORE = {
  instances: ['Instances.', 'status'],
  lists: ['Lists of active instances, without paused ones.', 'state'],
  list_failing_seconds: [
    'For how long errors have kept all pages of a list back, of the list with the longest such time; 0 without one.',
  ],
  list_age_seconds: ['Since the last check or full run of the list that was checked longest ago.'],
  sync_held_deletions: ['Deletions that full runs hold back.'],
  consumer_lag_seconds: ['Age of the oldest change that waits for a consumer; 0 if none waits.', 'consumer'],
  handler_dead_letters: ['Records that the handler could not take.'],
  outbox_writes: [
    'Writes to the service by state: pending and sending; refused and unknown wait for a person.',
    'state',
  ],
  outbox_lag_seconds: ['Age of the oldest write that is pending or being sent; 0 without one.'],
  refresh_token_first_end_seconds: [
    'Until the first refresh token in use ends, if it lives six calendar months.',
  ],
  refresh_tokens_overdue: [
    'Refresh tokens whose rotation has been due for two hours without a refresh that went well.',
  ],
} as const satisfies Gauges;

/** Gauges of this process, and of Redis. */
const OF_PROCESS = {
  figures_read: ['1 if database and queue could be read.'],
  ready: ['1 if /readyz finds nothing wrong.'],
  sync_jobs: ['Sync jobs: waiting for a worker, active, delayed, failed.', 'state'],
  sync_sweep_late_seconds: [
    'For how long this worker could not look for due runs and tokens; 0 while it can.',
  ],
  sync_workers: ['Worker processes that run on this database.'],
} as const satisfies Gauges;

/** A scrape leaves out a gauge without a value: a 0 would say that all is well. */
type Value = number | Readonly<Record<string, number>> | undefined;

/** The sources of a scrape. One that fails does not stop the others. */
interface FigureSources {
  store: () => Promise<Record<keyof typeof OF_STORE, Value>>;
  /** Sync jobs by state, from Redis. */
  jobs: () => Promise<Record<string, number>>;
  /** How late this process is with its look for due runs, in milliseconds. */
  sweepLateMs: () => number;
  /** Living worker processes; undefined if nobody could count them. */
  workers: () => number | undefined;
  /** The answer of `/readyz`. */
  isReady: () => Promise<boolean>;
}

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates the metrics of one process, which docs/operations.md describes. No label holds an id.
 *
 * @param syncedRoutes the routes of the sync; the handler's calls add others
 * @param version of the app
 */
export function createMetrics(syncedRoutes: readonly string[], sources: FigureSources, version: string) {
  const registry = new Registry();
  const registers = [registry];
  const counted = { ...sources, store: kept(sources.store), jobs: kept(sources.jobs) };
  // Under their usual names, `process_…` and `nodejs_…`, which dashboards know.
  collectDefaultMetrics({ register: registry });
  const count = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Counter({ name: PREFIX + name, help: withLabels(help, labelNames), labelNames, registers });
  const measure = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: Label[]
  ) =>
    new Histogram({
      name: PREFIX + name,
      help: withLabels(help, labelNames),
      buckets,
      labelNames,
      registers,
    });
  const all: Gauges = { ...OF_STORE, ...OF_PROCESS };
  const gauges = Object.entries(all).map(([name, [help, label]]) => {
    const labelNames = label === undefined ? [] : [label];
    const options = { name: PREFIX + name, help: withLabels(help, labelNames), labelNames, registers };
    return { gauge: new Gauge(options), label, name };
  });

  const build = { name: `${PREFIX}build_info`, help: withLabels('1.', ['version']), registers };
  new Gauge({ ...build, labelNames: ['version'] }).set({ version }, 1);
  const requests = count('service_requests_total', 'Requests to the service.', 'route', 'outcome');
  const refusals = count('service_refusals_total', 'Requests that the service refused.', 'route', 'by');
  const requestSeconds = measure(
    'service_request_duration_seconds',
    'Time until the service had answered.',
    DURATION_BUCKETS_S,
    'route',
  );
  const tokenRefreshes = count('token_refreshes_total', 'Token refreshes.', 'outcome');
  const checks = count('checks_total', 'Checks of the first pages of lists.', 'outcome');
  const writes = count('outbox_tries_total', 'Tries of writes to the service.', 'outcome');
  // A counter must exist before its first event, or Prometheus sees no increase.
  for (const route of syncedRoutes) for (const by of REFUSED_BY) refusals.inc({ route, by }, 0);
  for (const outcome of REFRESH_OUTCOMES) tokenRefreshes.inc({ outcome }, 0);
  for (const outcome of CHECK_OUTCOMES) checks.inc({ outcome }, 0);
  for (const outcome of WRITE_OUTCOMES) writes.inc({ outcome }, 0);

  return {
    /** @returns the text for Prometheus, and its content type */
    async scrape() {
      const read = await readAll(counted);
      for (const { gauge, label, name } of gauges) {
        const values = read[name];
        if (label === undefined) gauge.remove();
        else gauge.reset();
        if (typeof values === 'number') gauge.set(values);
        else
          for (const [key, value] of Object.entries(values ?? {})) gauge.set({ [label ?? '']: key }, value);
      }
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
    /** Counts an answer of the service; status 0 means none. */
    onServiceOutcome(outcome: {
      route: string;
      status: number;
      durationMs: number;
      refusedBy?: 'limit' | 'guard';
    }): void {
      const { route, status, durationMs, refusedBy } = outcome;
      requests.inc({ route, outcome: status === 0 ? 'no_answer' : String(status) });
      requestSeconds.observe({ route }, durationMs / 1_000);
      if (refusedBy !== undefined) refusals.inc({ route, by: refusedBy });
    },
    onTokenRefresh: (outcome: string): void => tokenRefreshes.inc({ outcome }),
    checks,
    writes,
    slotWaitSeconds: measure(
      'sync_slot_wait_seconds',
      'How long a run waited for a request to be granted.',
      WAIT_BUCKETS_S,
    ),
    jobWaitSeconds: measure(
      'sync_job_wait_seconds',
      'How long the job of a new run waited for its first place in a worker.',
      WAIT_BUCKETS_S,
    ),
    pages: count('sync_pages_total', 'Pages stored.', 'resource'),
    runs: count('sync_runs_total', 'Full runs that came to an end.', 'resource', 'outcome'),
    httpRequestSeconds: measure(
      'http_request_duration_seconds',
      'Requests to the web app.',
      DURATION_BUCKETS_S,
      'method',
      'route',
      'status',
    ),
  };
}

/** A help text that names the labels. */
function withLabels(help: string, labels: readonly string[]): string {
  return labels.length === 0 ? help : `${help} Labels: ${labels.join(', ')}.`;
}

async function readAll({
  store,
  jobs,
  isReady,
  workers,
  sweepLateMs,
}: FigureSources): Promise<Record<string, Value>> {
  const read = <Read>(source: () => Promise<Read>): Promise<Read | undefined> =>
    within(SCRAPE_LIMIT_MS, source).catch(() => undefined);
  const [figures, counts, ready] = await Promise.all([read(store), read(jobs), read(isReady)]);
  return {
    ...figures,
    figures_read: figures && counts ? 1 : 0,
    ready: ready ? 1 : 0,
    sync_jobs: counts,
    sync_sweep_late_seconds: sweepLateMs() / 1_000,
    sync_workers: workers(),
  };
}

/**
 * Reads figures once at a time. Where that takes long, the answer is what was read before, the reading goes on for the
 * next call, and a pause follows it.
 */
function kept<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let last: { value: Value; at: number; restUntil: number } | undefined;
  let reading: Promise<Value> | undefined;
  const readAgain = async () => {
    const begunAt = performance.now();
    try {
      const value = await read();
      const at = performance.now();
      const tookMs = at - begunAt;
      last = { value, at, restUntil: at + (tookMs > COUNTING_MS ? REST * tookMs : 0) };
      return value;
    } catch (error) {
      // Figures of before an outage would hide it.
      last = undefined;
      throw error;
    } finally {
      reading = undefined;
    }
  };
  return async () => {
    if (last !== undefined && performance.now() < Math.min(last.restUntil, last.at + OLDEST_MS)) {
      return last.value;
    }
    reading ??= readAgain();
    if (last === undefined || performance.now() - last.at > OLDEST_MS) return reading;
    return Promise.race([reading, sleep(COUNTING_MS, last.value, { ref: false })]);
  };
}
