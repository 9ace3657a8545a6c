import { expect, it, vi } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const FIGURES = {
  instances: { active: 3, paused: 1 },
  lists: { idle: 5, failed: 1 },
  list_failing_seconds: 90,
  sync_held_deletions: 27,
  handler_dead_letters: 5,
  outbox_writes: { pending: 6, unknown: 1 },
  outbox_lag_seconds: 2.5,
  consumer_lag_seconds: { handler: 1.5 },
  list_age_seconds: 90.5,
  refresh_token_first_end_seconds: 3_600,
  refresh_tokens_overdue: 1,
};

const SOURCES = {
  store: async (): Promise<typeof FIGURES> => FIGURES,
  jobs: async (): Promise<Record<string, number>> => ({ waiting: 4 }),
  sweepLateMs: (): number => 61_500,
  workers: (): number | undefined => 2,
  isReady: async (): Promise<boolean> => true,
};

const OF_STORE = [
  'instances{status="active"} 3',
  'instances{status="paused"} 1',
  'lists{state="idle"} 5',
  'lists{state="failed"} 1',
  'list_failing_seconds 90',
  'sync_held_deletions 27',
  'consumer_lag_seconds{consumer="handler"} 1.5',
  'outbox_writes{state="pending"} 6',
  'outbox_writes{state="unknown"} 1',
  'outbox_lag_seconds 2.5',
  'handler_dead_letters 5',
  'list_age_seconds 90.5',
  'refresh_token_first_end_seconds 3600',
  'refresh_tokens_overdue 1',
];
const OF_QUEUE = ['sync_jobs{state="waiting"} 4'];

const create = (sources: Partial<typeof SOURCES> = {}) =>
  createMetrics(['/contacts'], { ...SOURCES, ...sources }, '1.2.3');

/** The lines of an answer, without the prefix that all have. */
async function scrape(metrics: ReturnType<typeof create>): Promise<string[]> {
  const { body, contentType } = await metrics.scrape();
  expect(contentType).toContain('text/plain');
  return body.split('\n').flatMap((line) => /^partner_app_(.*)/.exec(line)?.[1] ?? []);
}

it('tells the version, names the labels, and leaves the process its usual names', async () => {
  const { body } = await create().scrape();
  expect(body).toContain('partner_app_build_info{version="1.2.3"} 1');
  expect(body).toContain(
    '# HELP partner_app_service_refusals_total Requests that the service refused. Labels: route, by.',
  );
  expect(body).toContain(
    '# HELP partner_app_lists Lists of active instances, without paused ones. Labels: state.',
  );
  expect(body).toMatch(/^process_resident_memory_bytes \d/m);
  expect(body).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m);
});

it('counts and measures what it is told', async () => {
  const metrics = create();
  metrics.onServiceOutcome({ route: '/contacts', status: 429, durationMs: 40, refusedBy: 'guard' });
  metrics.onServiceOutcome({ route: '/contacts', status: 0, durationMs: 30_000 });
  metrics.slotWaitSeconds.observe(31);
  metrics.pages.inc({ resource: 'contacts' });
  metrics.httpRequestSeconds.observe({ method: 'GET', route: '/', status: 200 }, 0.002);
  expect(await scrape(metrics)).toEqual(
    expect.arrayContaining([
      'service_requests_total{route="/contacts",outcome="429"} 1',
      'service_requests_total{route="/contacts",outcome="no_answer"} 1',
      'service_refusals_total{route="/contacts",by="guard"} 1',
      'service_request_duration_seconds_bucket{le="0.05",route="/contacts"} 1',
      'sync_slot_wait_seconds_bucket{le="30"} 0',
      'sync_slot_wait_seconds_bucket{le="45"} 1',
      'sync_pages_total{resource="contacts"} 1',
      'http_request_duration_seconds_count{method="GET",route="/",status="200"} 1',
    ]),
  );
});

it('counts refusals, refreshes and checks from 0, so that the first is an increase', async () => {
  const outcomes = ['refreshed', 'rotated', 'failed', 'rejected', 'lost'];
  const checks = ['unchanged', 'changed', 'ran_out', 'failed'];
  expect(await scrape(create())).toEqual(
    expect.arrayContaining([
      ...['limit', 'guard'].map((by) => `service_refusals_total{route="/contacts",by="${by}"} 0`),
      ...outcomes.map((outcome) => `token_refreshes_total{outcome="${outcome}"} 0`),
      ...checks.map((outcome) => `checks_total{outcome="${outcome}"} 0`),
    ]),
  );
});

it('reads the figures once for each scrape', async () => {
  let reads = 0;
  const metrics = create({
    store: async () => (++reads === 1 ? FIGURES : { ...FIGURES, instances: { active: 4, paused: 0 } }),
  });
  const others = ['figures_read 1', 'ready 1', 'sync_workers 2', 'sync_sweep_late_seconds 61.5'];
  expect(await scrape(metrics)).toEqual(expect.arrayContaining([...OF_STORE, ...OF_QUEUE, ...others]));
  expect(await scrape(metrics)).toContain('instances{status="active"} 4');
  expect(reads).toBe(2);
});

const fails = () => Promise.reject(new Error('cannot be reached'));
const hangs = () => new Promise<never>(() => undefined);

it('shows figures of before while counting takes long, for five minutes', async () => {
  const slow = Promise.withResolvers<typeof FIGURES>();
  const answers = [Promise.resolve(FIGURES), slow.promise, new Promise<never>(() => {})];
  const metrics = create({ store: () => answers.shift() ?? expect.unreachable() });
  const deadLetters = async () => (await scrape(metrics)).find((line) => line.startsWith('handler_dead'));
  expect(await deadLetters()).toBe('handler_dead_letters 5');
  expect(await deadLetters()).toBe('handler_dead_letters 5');
  slow.resolve({ ...FIGURES, handler_dead_letters: 6 });
  await slow.promise;
  expect(await deadLetters()).toBe('handler_dead_letters 6');
  // What took long is not counted again at once.
  expect(answers).toHaveLength(1);
  const later = performance.now() + 301_000;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  expect(await deadLetters()).toBeUndefined();
  vi.restoreAllMocks();
});

it.each([
  { source: 'store', fail: fails, lost: OF_STORE, kept: [...OF_QUEUE, 'figures_read 0'] },
  { source: 'jobs', fail: fails, lost: OF_QUEUE, kept: [...OF_STORE, 'figures_read 0'] },
  { source: 'isReady', fail: hangs, lost: [], kept: ['ready 0'] },
  { source: 'workers', fail: () => undefined, lost: ['sync_workers'], kept: OF_STORE },
] as const)(
  'a source that fails leaves out its own gauges: $source',
  async ({ source, fail, lost, kept }) => {
    let isBroken = false;
    const broken = () => (isBroken ? fail() : SOURCES[source]());
    const metrics = create({ [source]: broken });
    await scrape(metrics);
    isBroken = true;
    const lines = await scrape(metrics);
    expect(lines).toEqual(expect.arrayContaining([...kept]));
    // Neither an old figure nor a 0, which would say that all is well.
    const nameOf = (line: string) => line.split(/[{ ]/)[0];
    const names = lines.map(nameOf);
    for (const line of lost) expect(names).not.toContain(nameOf(line));
  },
);
