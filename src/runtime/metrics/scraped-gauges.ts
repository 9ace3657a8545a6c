import { Gauge, type Registry } from 'prom-client';

/** How long a scrape waits for figures, in milliseconds: it does without them then. */
const SCRAPE_LIMIT_MS = 1_000;

/** What is read when somebody scrapes: the same whichever process is asked. */
export interface Figures {
  instances: Record<string, number>;
  runs: Record<string, number>;
  jobs: Record<string, number>;
  /** Worker processes that live; undefined when that cannot be told. */
  workers: number | undefined;
  /** Age of the run that is under way the longest; 0 when none is. */
  oldestRunAgeMs: number;
  /** Until the first refresh token in use ends; undefined when there is none. */
  refreshTokenEndsInMs: number | undefined;
  refreshTokensDue: number;
  refreshTokensOverdue: number;
}

/** A gauge's value, or its values by the label; undefined: the gauge is empty. */
type Reading = number | Record<string, number> | undefined;

/**
 * Gauges that are read when somebody scrapes. When they cannot be read in time, they are empty in the answer and
 * `figures_read` is 0; the rest of the answer stands.
 *
 * @param read not called again while a call is under way
 */
export function addScrapedGauges(registry: Registry, read: () => Promise<Figures>): void {
  let reading: Promise<Figures> | undefined;
  const figures = () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return within(reading, SCRAPE_LIMIT_MS);
  };
  const add = (name: string, help: string, value: (figures?: Figures) => Reading, label?: string) =>
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        // All gauges of a scrape are collected at once, so they share one reading.
        const values = value(await figures());
        if (label !== undefined) this.reset();
        else this.remove();
        if (typeof values === 'number') this.set(values);
        else
          for (const [key, number] of Object.entries(values ?? {})) this.set({ [label ?? '']: key }, number);
      },
    });

  add('figures_read', '1 if database and queue could be read for this scrape.', (read) => (read ? 1 : 0));
  add('app_instances', 'Instances by status.', (read) => read?.instances, 'status');
  add('sync_runs_now', 'Runs of active instances by state.', (read) => read?.runs, 'state');
  add(
    'sync_jobs',
    'Sync jobs by state: waiting (for a worker), active, delayed.',
    (read) => read?.jobs,
    'state',
  );
  add('sync_workers', 'Worker processes that run on this database.', (read) => read?.workers);
  add(
    'sync_oldest_run_age_seconds',
    'Age of the run of an active instance that is under way the longest; 0 if none is.',
    (read) => read && read.oldestRunAgeMs / 1_000,
  );
  add(
    'refresh_token_first_end_seconds',
    'Until the first refresh token in use ends, if it lives six calendar months.',
    (read) => (read?.refreshTokenEndsInMs === undefined ? undefined : read.refreshTokenEndsInMs / 1_000),
  );
  add('refresh_tokens_due', 'Refresh tokens whose rotation is due.', (read) => read?.refreshTokensDue);
  add(
    'refresh_tokens_overdue',
    'Refresh tokens whose rotation has been due for two hours without a refresh that went well.',
    (read) => read?.refreshTokensOverdue,
  );
}

/** What the promise brings, or undefined when it rejects or takes too long. */
async function within<Value>(promise: Promise<Value>, limitMs: number): Promise<Value | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, limitMs, undefined);
  try {
    return await Promise.race([late, promise]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
