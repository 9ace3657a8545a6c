import { Gauge, type Registry } from 'prom-client';

/** How long a scrape waits for figures, in milliseconds: it does without them then. */
const SCRAPE_LIMIT_MS = 1_000;

/** What the store tells when somebody scrapes: the same whichever process is asked. */
export interface Figures {
  instances: Record<string, number>;
  lists: Record<string, number>;
  /** Deletions that whole runs hold back, and records that the handler could not take. */
  heldDeletions: number;
  deadLetters: number;
  /** How long a list has not been read to its end, the one that is behind the longest; 0 when none is. */
  oldestRunAgeMs: number;
  /** Until the first refresh token in use ends; undefined when there is none. */
  refreshTokenEndsInMs: number | undefined;
  refreshTokensDue: number;
  refreshTokensOverdue: number;
}

/** Where figures are read, each by itself: what one cannot tell, the others still can. */
export interface FigureSources {
  store: () => Promise<Figures>;
  /** Sync jobs by state, which Redis knows. */
  jobs: () => Promise<Record<string, number>>;
  /** For how long this process could not look for due runs, in milliseconds. */
  sweepLateMs: () => number;
  /** Worker processes that live; undefined when that cannot be told. */
  workers: () => number | undefined;
  /** How many bytes of answers this process has in memory. */
  answers: () => number;
  /** Whether this process can do its work, by the checks of `/readyz`. */
  isReady: () => Promise<boolean>;
}

/** A gauge's value, or its values by the label; undefined: the gauge is empty. */
type Reading = number | Record<string, number> | undefined;

/**
 * Gauges that are read when somebody scrapes. Those of a source that cannot be read in time are empty in the answer, and
 * `partner_app_figures_read` is 0; the rest of the answer stands.
 *
 * @param sources none is read again while a reading is under way
 */
export function addScrapedGauges(registry: Registry, sources: FigureSources): void {
  const store = sharedReading(sources.store);
  const jobs = sharedReading(sources.jobs);
  const isReady = sharedReading(sources.isReady);
  const add = (name: string, help: string, read: () => Reading | Promise<Reading>, label?: string) =>
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        const values = await read();
        if (label !== undefined) this.reset();
        else this.remove();
        if (typeof values === 'number') this.set(values);
        else
          for (const [key, number] of Object.entries(values ?? {})) this.set({ [label ?? '']: key }, number);
      },
    });

  const addOfStore = (name: string, help: string, value: (figures: Figures) => Reading, label?: string) =>
    add(
      name,
      help,
      async () => {
        const figures = await store();
        return figures && value(figures);
      },
      label,
    );

  add('partner_app_figures_read', '1 if database and queue could be read for this scrape.', async () => {
    const read = await Promise.all([store(), jobs()]);
    return read.includes(undefined) ? 0 : 1;
  });
  // One that takes too long counts as not ready: a locked database is waited for longer than a scrape waits.
  add('partner_app_ready', '1 if /readyz of this process would say that it is ready.', async () =>
    (await isReady()) ? 1 : 0,
  );
  addOfStore('partner_app_instances', 'Instances by status.', ({ instances }) => instances, 'status');
  addOfStore('partner_app_sync_lists', 'Lists of active instances by state.', ({ lists }) => lists, 'state');
  addOfStore(
    'partner_app_sync_held_deletions',
    'Deletions that runs hold back until the next one agrees or a person confirms them.',
    (read) => read.heldDeletions,
  );
  addOfStore(
    'partner_app_handler_dead_letters',
    'Records that the handler could not take.',
    (read) => read.deadLetters,
  );
  add(
    'partner_app_sync_jobs',
    'Sync jobs by state: waiting (for a worker), active, delayed, failed.',
    jobs,
    'state',
  );
  add(
    'partner_app_sync_sweep_late_seconds',
    'For how long this worker could not look for due runs and tokens; 0 while it can.',
    () => sources.sweepLateMs() / 1_000,
  );
  add('partner_app_sync_workers', 'Worker processes that run on this database.', sources.workers);
  add(
    'partner_app_service_answer_bytes',
    'Answers in memory: those that are read, and pages until they are written.',
    sources.answers,
  );
  addOfStore(
    'partner_app_sync_oldest_run_age_seconds',
    'How long a list of an active instance has not been read to its end since it was to be; 0 if all are idle.',
    ({ oldestRunAgeMs }) => oldestRunAgeMs / 1_000,
  );
  addOfStore(
    'partner_app_refresh_token_first_end_seconds',
    'Until the first refresh token in use ends, if it lives six calendar months.',
    ({ refreshTokenEndsInMs }) => refreshTokenEndsInMs && refreshTokenEndsInMs / 1_000,
  );
  addOfStore(
    'partner_app_refresh_tokens_due',
    'Refresh tokens whose rotation is due.',
    (read) => read.refreshTokensDue,
  );
  addOfStore(
    'partner_app_refresh_tokens_overdue',
    'Refresh tokens whose rotation has been due for two hours without a refresh that went well.',
    (read) => read.refreshTokensOverdue,
  );
}

/** Reads for whoever asks meanwhile: all gauges of a scrape are collected at once, so they share one reading. */
function sharedReading<Value>(read: () => Promise<Value>): () => Promise<Value | undefined> {
  let reading: Promise<Value> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return within(reading, SCRAPE_LIMIT_MS);
  };
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
