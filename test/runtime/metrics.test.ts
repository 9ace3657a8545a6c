import { afterEach, describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const FIGURES = {
  instances: { active: 3, paused: 1 },
  lists: { waiting: 2, running: 1 },
  heldDeletions: 27,
  deadLetters: 5,
  oldestRunAgeMs: 90_500,
  refreshTokenEndsInMs: 3_600_000,
  refreshTokensDue: 2,
  refreshTokensOverdue: 1,
};

const SOURCES = {
  store: async (): Promise<typeof FIGURES> => FIGURES,
  jobs: async (): Promise<Record<string, number>> => ({ waiting: 4 }),
  sweepLateMs: (): number => 61_500,
  workers: (): number | undefined => 2,
  answers: (): number => 70_000,
  isReady: async (): Promise<boolean> => true,
};

type Metrics = ReturnType<typeof createMetrics>;

const made: Metrics[] = [];

afterEach(() => {
  for (const metrics of made.splice(0)) metrics.close();
});

function create(sources: Partial<Parameters<typeof createMetrics>[1]> = {}): Metrics {
  const metrics = createMetrics(['/contacts'], { ...SOURCES, ...sources });
  made.push(metrics);
  return metrics;
}

function expectLines(text: string, lines: string[]): void {
  const all = text.split('\n');
  for (const line of lines) expect(all).toContain(line);
}

it('writes what was counted as text for Prometheus', async () => {
  const metrics = create();
  metrics.serviceRequests.inc({ route: '/contacts', outcome: 'ok' });
  metrics.serviceRefusals.inc({ route: '/contacts', by: 'guard' });
  metrics.limitLeft.observe(0);
  metrics.limitLeft.observe(0.04);
  metrics.slotWaitSeconds.observe(31);
  metrics.jobWaitSeconds.observe(0.2);
  metrics.pages.inc({ resource: 'contacts' });
  metrics.records.inc({ resource: 'contacts' }, 100);
  metrics.runs.inc({ resource: 'contacts', outcome: 'finished' });
  metrics.tokenRefreshes.inc({ outcome: 'rotated' });
  metrics.serviceRequestSeconds.observe({ route: '/contacts' }, 0.04);
  metrics.httpRequestSeconds.observe({ method: 'GET', route: '/', status: 200 }, 0.002);
  const text = await metrics.registry.metrics();
  expectLines(text, [
    'partner_app_service_requests_total{route="/contacts",outcome="ok"} 1',
    'partner_app_service_refusals_total{route="/contacts",by="guard"} 1',
    'partner_app_service_limit_left_ratio_bucket{le="0"} 1',
    'partner_app_service_limit_left_ratio_bucket{le="0.05"} 2',
    'partner_app_sync_slot_wait_seconds_bucket{le="30"} 0',
    'partner_app_sync_slot_wait_seconds_bucket{le="45"} 1',
    'partner_app_sync_job_wait_seconds_sum 0.2',
    'partner_app_sync_pages_total{resource="contacts"} 1',
    'partner_app_sync_records_total{resource="contacts"} 100',
    'partner_app_sync_runs_total{resource="contacts",outcome="finished"} 1',
    'partner_app_token_refreshes_total{outcome="rotated"} 1',
    'partner_app_service_request_duration_seconds_bucket{le="0.05",route="/contacts"} 1',
    'partner_app_http_request_duration_seconds_count{method="GET",route="/",status="200"} 1',
  ]);
  expect(text).toContain('partner_app_process_cpu_seconds_total');
});

it('tells refusals and refreshes from 0, so that the first of it is seen as an increase', async () => {
  const text = await create().registry.metrics();
  const series = (name: string) => text.split('\n').filter((line) => line.startsWith(`${name}{`));
  expect(series('partner_app_service_refusals_total')).toEqual([
    'partner_app_service_refusals_total{route="/contacts",by="limit"} 0',
    'partner_app_service_refusals_total{route="/contacts",by="guard"} 0',
  ]);
  expect(series('partner_app_token_refreshes_total')).toEqual(
    ['refreshed', 'rotated', 'failed', 'rejected', 'lost'].map(
      (outcome) => `partner_app_token_refreshes_total{outcome="${outcome}"} 0`,
    ),
  );
});

it('shares nothing between two of them', async () => {
  const one = create();
  const other = create();
  one.pages.inc({ resource: 'contacts' });
  expect(await other.registry.metrics()).not.toContain('partner_app_sync_pages_total{');
});

it('reads figures once a scrape, and forgets what is no more', async () => {
  let reads = 0;
  const metrics = create({
    store: async () => (++reads === 1 ? FIGURES : { ...FIGURES, instances: { active: 4 } }),
  });
  expectLines(await metrics.registry.metrics(), [
    'partner_app_figures_read 1',
    'partner_app_instances{status="active"} 3',
    'partner_app_instances{status="paused"} 1',
    'partner_app_sync_lists{state="waiting"} 2',
    'partner_app_sync_held_deletions 27',
    'partner_app_handler_dead_letters 5',
    'partner_app_sync_jobs{state="waiting"} 4',
    'partner_app_sync_workers 2',
    'partner_app_sync_sweep_late_seconds 61.5',
    'partner_app_service_answer_bytes 70000',
    'partner_app_ready 1',
    'partner_app_sync_oldest_run_age_seconds 90.5',
    'partner_app_refresh_token_first_end_seconds 3600',
    'partner_app_refresh_tokens_due 2',
    'partner_app_refresh_tokens_overdue 1',
  ]);
  const second = await metrics.registry.metrics();
  expect(reads).toBe(2);
  expectLines(second, ['partner_app_instances{status="active"} 4']);
  expect(second).not.toContain('status="paused"');
});

const OF_STORE =
  /^partner_app_(instances|sync_lists|sync_held_deletions|handler_dead_letters|sync_oldest_run_age_seconds|refresh_token_first_end_seconds|refresh_tokens_(due|overdue))[ {]/m;

describe.each([
  ['fails', () => Promise.reject(new Error('cannot be reached'))],
  ['never comes to an end', () => new Promise<never>(() => undefined)],
])('a reading that %s', (_how, fail) => {
  it('of the store leaves what the queue tells', async () => {
    let reads = 0;
    const metrics = create({ store: () => (++reads === 1 ? SOURCES.store() : fail()) });
    metrics.pages.inc({ resource: 'contacts' });
    expect(await metrics.registry.metrics()).toMatch(OF_STORE);
    const text = await metrics.registry.metrics();
    expectLines(text, [
      'partner_app_figures_read 0',
      'partner_app_sync_jobs{state="waiting"} 4',
      'partner_app_sync_workers 2',
      'partner_app_sync_pages_total{resource="contacts"} 1',
    ]);
    // No figure of an earlier scrape is told as if it were true now, nor a 0 that would say that all is well.
    expect(text).not.toMatch(OF_STORE);
  });

  it('of the queue leaves what the store tells', async () => {
    let reads = 0;
    const metrics = create({ jobs: () => (++reads === 1 ? SOURCES.jobs() : fail()) });
    expect(await metrics.registry.metrics()).toContain('partner_app_sync_jobs{');
    const text = await metrics.registry.metrics();
    expectLines(text, [
      'partner_app_figures_read 0',
      'partner_app_sync_lists{state="waiting"} 2',
      'partner_app_sync_workers 2',
      'partner_app_sync_oldest_run_age_seconds 90.5',
      'partner_app_refresh_token_first_end_seconds 3600',
      'partner_app_refresh_tokens_overdue 1',
    ]);
    expect(text).not.toContain('partner_app_sync_jobs{');
  });

  it('of readiness counts as not ready, and leaves all else', async () => {
    const text = await create({ isReady: fail }).registry.metrics();
    expectLines(text, ['partner_app_ready 0', 'partner_app_figures_read 1', 'partner_app_sync_workers 2']);
  });
});

it('leaves the workers out when they cannot be counted', async () => {
  const text = await create({ workers: () => undefined }).registry.metrics();
  expectLines(text, [
    'partner_app_figures_read 1',
    'partner_app_sync_oldest_run_age_seconds 90.5',
    'partner_app_sync_jobs{state="waiting"} 4',
  ]);
  expect(text).not.toMatch(/^partner_app_sync_workers /m);
});

it('says that the process is not ready, after one look for all who ask meanwhile', async () => {
  const looks: ((isReady: boolean) => void)[] = [];
  const metrics = create({ isReady: () => new Promise((resolve) => looks.push(resolve)) });
  const scrapes = [metrics.registry.metrics(), metrics.registry.metrics()];
  await expect.poll(() => looks.length).toBe(1);
  looks[0]?.(false);
  for (const text of await Promise.all(scrapes)) expectLines(text, ['partner_app_ready 0']);
  expect(looks.length).toBe(1);
  const later = metrics.registry.metrics();
  await expect.poll(() => looks.length).toBe(2);
  looks[1]?.(true);
  expectLines(await later, ['partner_app_ready 1']);
});

it('sees that the event loop was blocked', async () => {
  const metrics = create();
  const count = async (le: string) => {
    const text = await metrics.registry.getSingleMetricAsString('partner_app_event_loop_delay_seconds');
    return Number(new RegExp(`le="${le.replace('+', '\\+')}"} (\\d+)`).exec(text)?.[1]);
  };
  const blockedUntil = performance.now() + 800;
  while (performance.now() < blockedUntil);
  await expect.poll(() => count('+Inf')).toBeGreaterThan(0);
  expect((await count('+Inf')) - (await count('0.5'))).toBeGreaterThan(0);
});
