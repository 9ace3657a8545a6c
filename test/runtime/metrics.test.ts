import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const FIGURES = {
  instances: { active: 3, paused: 1 },
  heldDeletions: 27,
  deadLetters: 5,
  consumerLagMs: { handler: 1_500 },
  oldestRunAgeMs: 90_500,
  refreshTokenEndsInMs: 3_600_000,
  refreshTokensOverdue: 1,
};

const SOURCES = {
  store: async (): Promise<typeof FIGURES> => FIGURES,
  jobs: async (): Promise<Record<string, number>> => ({ waiting: 4 }),
  sweepLateMs: (): number => 61_500,
  workers: (): number | undefined => 2,
  isReady: async (): Promise<boolean> => true,
};

const OF_STORE = [
  'partner_app_instances{status="active"} 3',
  'partner_app_instances{status="paused"} 1',
  'partner_app_sync_held_deletions 27',
  'partner_app_consumer_lag_seconds{consumer="handler"} 1.5',
  'partner_app_handler_dead_letters 5',
  'partner_app_sync_oldest_run_age_seconds 90.5',
  'partner_app_refresh_token_first_end_seconds 3600',
  'partner_app_refresh_tokens_overdue 1',
];
const OF_QUEUE = ['partner_app_sync_jobs{state="waiting"} 4'];

const create = (sources: Partial<typeof SOURCES> = {}) =>
  createMetrics(['/contacts'], { ...SOURCES, ...sources });

async function scrape(metrics: ReturnType<typeof create>): Promise<string[]> {
  const { body, contentType } = await metrics.scrape();
  expect(contentType).toContain('text/plain');
  return body.split('\n').filter((line) => !line.startsWith('#'));
}

it('writes what was counted as text for Prometheus', async () => {
  const metrics = create();
  metrics.onServiceOutcome({ route: '/contacts', status: 429, durationMs: 40, refusedBy: 'guard' });
  metrics.onServiceOutcome({ route: '/contacts', status: 0, durationMs: 30_000 });
  metrics.slotWaitSeconds.observe(31);
  metrics.pages.inc({ resource: 'contacts' });
  metrics.httpRequestSeconds.observe({ method: 'GET', route: '/', status: 200 }, 0.002);
  expect(await scrape(metrics)).toEqual(
    expect.arrayContaining([
      'partner_app_service_requests_total{route="/contacts",outcome="429"} 1',
      'partner_app_service_requests_total{route="/contacts",outcome="no_answer"} 1',
      'partner_app_service_refusals_total{route="/contacts",by="guard"} 1',
      'partner_app_service_request_duration_seconds_bucket{le="0.05",route="/contacts"} 1',
      'partner_app_sync_slot_wait_seconds_bucket{le="30"} 0',
      'partner_app_sync_slot_wait_seconds_bucket{le="45"} 1',
      'partner_app_sync_pages_total{resource="contacts"} 1',
      'partner_app_http_request_duration_seconds_count{method="GET",route="/",status="200"} 1',
    ]),
  );
});

it('tells refusals and refreshes from 0, so that the first is an increase', async () => {
  const outcomes = ['refreshed', 'rotated', 'failed', 'rejected', 'lost'];
  expect(await scrape(create())).toEqual(
    expect.arrayContaining([
      'partner_app_service_refusals_total{route="/contacts",by="limit"} 0',
      'partner_app_service_refusals_total{route="/contacts",by="guard"} 0',
      ...outcomes.map((outcome) => `partner_app_token_refreshes_total{outcome="${outcome}"} 0`),
    ]),
  );
});

it('reads figures once a scrape, and forgets what is no more', async () => {
  let reads = 0;
  const metrics = create({
    store: async () => (++reads === 1 ? FIGURES : { ...FIGURES, instances: { active: 4, paused: 0 } }),
  });
  expect(await scrape(metrics)).toEqual(
    expect.arrayContaining([
      ...OF_STORE,
      ...OF_QUEUE,
      'partner_app_figures_read 1',
      'partner_app_ready 1',
      'partner_app_sync_workers 2',
      'partner_app_sync_sweep_late_seconds 61.5',
    ]),
  );
  expect(await scrape(metrics)).toContain('partner_app_instances{status="active"} 4');
  expect(reads).toBe(2);
});

describe.each([
  ['fails', () => Promise.reject(new Error('cannot be reached'))],
  ['never comes to an end', () => new Promise<never>(() => undefined)],
])('a reading that %s', (_how, fail) => {
  it.each([
    { source: 'store', lost: OF_STORE, kept: OF_QUEUE },
    { source: 'jobs', lost: OF_QUEUE, kept: OF_STORE },
  ])('of $source leaves its gauges out, and all others in', async ({ source, lost, kept }) => {
    let isBroken = false;
    const sources = Object.fromEntries(
      (['store', 'jobs'] as const).map((name) => [
        name,
        () => (isBroken && name === source ? fail() : SOURCES[name]()),
      ]),
    );
    const metrics = create(sources);
    await scrape(metrics);
    isBroken = true;
    const lines = await scrape(metrics);
    expect(lines).toEqual(expect.arrayContaining([...kept, 'partner_app_figures_read 0']));
    const names = lines.map((line) => line.split(/[{ ]/)[0]);
    // No figure of an earlier scrape is told as if it were true now, nor a 0 that would say that all is well.
    for (const line of lost) expect(names).not.toContain(line.split(/[{ ]/)[0]);
  });

  it('of readiness counts as not ready', async () => {
    expect(await scrape(create({ isReady: fail }))).toContain('partner_app_ready 0');
  });
});

it('leaves the workers out when they cannot be counted', async () => {
  const lines = await scrape(create({ workers: () => undefined }));
  expect(lines.filter((line) => line.startsWith('partner_app_sync_workers'))).toEqual([]);
});
